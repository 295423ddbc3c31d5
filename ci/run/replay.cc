#include "ci/run/replay.h"

#include <filesystem>

#include "ci/command_table.h"
#include "ci/run/failures.h"
#include "ci/run/text_file.h"
#include "guard/base/text.h"

namespace attnguard {
namespace {

constexpr std::string_view kStart = "attnguard check ";

// Words as they are put together: an empty one in quotes is one, too.
class Words {
 public:
  void add(char c) {
    word_ += c;
    open_ = true;
  }
  void open() { open_ = true; }
  void close() {
    if (open_) words_.push_back(std::move(word_));
    word_.clear();
    open_ = false;
  }
  std::vector<std::string> take() {
    close();
    return std::move(words_);
  }

 private:
  std::vector<std::string> words_;
  std::string word_;
  bool open_ = false;
};

Result<Arguments> of_line(const std::string& line) {
  auto words = shell_words(line);
  if (!words.ok())
    return invalid_argument("--replay: " + words.status().message());
  std::vector<const char*> argv;
  for (const std::string& word : words.value()) argv.push_back(word.c_str());
  Result<Arguments> arguments =
      parse_arguments(static_cast<int>(argv.size()), argv.data());
  if (!arguments.ok())
    return invalid_argument("--replay: " + arguments.status().message());
  if (arguments.value().command() == nullptr)
    return invalid_argument("--replay: the line asks for help, not for a run");
  if (arguments.value().value("--replay"))
    return invalid_argument("--replay: the line holds another --replay");
  return arguments;
}

Arguments of_failure(const SavedFailure& failure, const CommandInfo& check) {
  Arguments arguments(check);
  arguments.add_value("--engine", failure.engine);
  arguments.add_value("--problem", failure.problem);
  arguments.add_value("--seed", std::to_string(failure.seed));
  for (const std::string& id : failure.checks)
    arguments.add_value("--check", id);
  if (!failure.coverage.empty())
    arguments.add_value("--coverage", failure.coverage);
  if (!failure.policy.empty()) arguments.add_value("--policy", failure.policy);
  return arguments;
}

// What was given beside --replay and what that says, as one command line.
Result<Arguments> joined(const Arguments& given, const Arguments& replayed) {
  Arguments both(*given.command());
  for (const OptionSpec& option : given.command()->options) {
    const std::string name = option.name;
    const std::vector<std::string> own = given.values(name);
    const std::vector<std::string> its = replayed.values(name);
    if (name == "--replay") continue;
    const bool decides = name == "--problem" || name == "--seed" ||
                         name == "--check" || name == "--coverage";
    if (decides && !own.empty())
      return invalid_argument(name + ": what --replay says decides; leave it " +
                              "out, or leave out --replay");
    for (const std::string& value : own.empty() ? its : own)
      both.add_value(name, value);
  }
  return both;
}

}  // namespace

Result<std::vector<std::string>> shell_words(const std::string& line) {
  Words words;
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != 0 && c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
      words.open();
    } else if (c == '\\' && quote != '\'' && i + 1 < line.size()) {
      words.add(line[++i]);
    } else if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      words.close();
    } else {
      words.add(c);
    }
  }
  if (quote != 0)
    return invalid_argument(std::string("a ") + quote + " is not closed");
  return words.take();
}

Result<ReplayRequest> resolve_replay(const Arguments& given) {
  const std::string what = *given.value("--replay");
  const std::string line(trim(what));
  ReplayRequest replay;
  Arguments replayed(*given.command());
  std::error_code error;
  if (line.starts_with(kStart)) {
    Result<Arguments> parsed = of_line(line);
    if (!parsed.ok()) return parsed.status();
    replayed = std::move(parsed.value());
  } else if (std::filesystem::exists(what, error)) {
    const Result<std::string> text = read_text_file(what);
    if (!text.ok())
      return invalid_argument("--replay: " + text.status().message());
    const auto failure = SavedFailure::parse(text.value());
    if (!failure.ok())
      return invalid_argument("--replay: " + what + ": " +
                              failure.status().message());
    replayed = of_failure(failure.value(), *given.command());
    replay.policy_settings = failure.value().policy_settings;
  } else {
    return invalid_argument("--replay: '" + what +
                            "' is neither a file nor a line that starts with "
                            "'attnguard check'");
  }
  Result<Arguments> both = joined(given, replayed);
  if (!both.ok()) return both.status();
  replay.arguments = std::move(both.value());
  return replay;
}

}  // namespace attnguard
