// `attnguard model`: a whole model, from its file.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <map>
#include <ostream>
#include <sstream>

#include "ci/child_process.h"
#include "ci/command_table.h"
#include "ci/model_openers.h"
#include "ci/output_file.h"
#include "ci/run/text_file.h"
#include "ci/usage.h"
#include "guard/base/text.h"
#include "guard/model/model_check.h"
#include "guard/model/verify_model.h"
#include "guard/report/model_report.h"
#include "guard/report/report.h"

namespace attnguard {
namespace {

constexpr std::uint64_t kMostTokensOfText = 1u << 20;
constexpr std::chrono::seconds kDefaultTimeout{1800};

std::string render_run(const ModelResult& result, const ReportFormat& format,
                       const ReportOptions& options) {
  const RunResult run = as_run_result(result);
  return format.render({&run, 1}, options);
}

// The request, once every value was understood.
struct ModelRequest {
  std::string file;
  const ModelOpener* opener = nullptr;
  std::map<std::string, std::string> model_options;
  ModelOptions options;
  std::string text_file, rounding;  // As given, for the replay.
  std::string format = "text";
  bool color = false;
  bool to_stdout = true;
  std::chrono::seconds timeout = kDefaultTimeout;
};

Status read_model_options(const Arguments& arguments, ModelRequest& request) {
  for (const std::string& option : arguments.values("--option")) {
    const std::size_t equals = option.find('=');
    if (equals == std::string::npos || equals == 0)
      return invalid_argument("--option '" + option +
                              "': write name=value, such as threads=1");
    if (!request.model_options
             .emplace(option.substr(0, equals), option.substr(equals + 1))
             .second)
      return invalid_argument("--option '" + option.substr(0, equals) +
                              "' is given twice");
  }
  return ok_status();
}

// Token ids, separated by blanks, commas or line breaks.
Status read_text(const std::string& file, std::vector<std::int32_t>& text) {
  const Result<std::string> read = read_text_file(file);
  if (!read.ok())
    return {StatusCode::kIo, "--text: cannot read " + read.status().message()};
  std::string words = read.value();
  for (char& letter : words)
    if (letter == ',' || letter == '[' || letter == ']') letter = ' ';
  std::istringstream pieces(words);
  for (std::string word; pieces >> word;) {
    const std::optional<std::int64_t> token = parse_int(word);
    if (!token || *token < 0 || *token > INT32_MAX)
      return invalid_argument("--text: " + file + ": '" + word +
                              "' is no token id; the file holds whole numbers");
    text.push_back(static_cast<std::int32_t>(*token));
  }
  if (text.empty())
    return invalid_argument("--text: " + file + " is empty: no token id");
  return ok_status();
}

Status read_numbers(const Arguments& arguments, ModelRequest& request) {
  ModelOptions& options = request.options;
  if (const auto seed = arguments.value("--seed")) {
    const auto number = whole_number("--seed", *seed, 0, UINT64_MAX);
    if (!number.ok()) return number.status();
    options.seed = number.value();
  }
  if (const auto tokens = arguments.value("--tokens")) {
    const auto number = whole_number("--tokens", *tokens, 4, kMostTokensOfText);
    if (!number.ok()) return number.status();
    options.num_tokens = static_cast<std::int64_t>(number.value());
  }
  if (const auto seconds = arguments.value("--timeout")) {
    const auto number = whole_number("--timeout", *seconds, 1, kMostSeconds);
    if (!number.ok()) return number.status();
    request.timeout =
        std::chrono::seconds(static_cast<std::int64_t>(number.value()));
  }
  if (const auto rounding = arguments.value("--rounding")) {
    const std::optional<double> number = parse_double(*rounding);
    if (!number || !(*number > 0))
      return invalid_argument("--rounding: '" + *rounding +
                              "' is not a positive number");
    options.rounding = *number;
    request.rounding = *rounding;
  }
  return ok_status();
}

Status read_appearance(const Arguments& arguments,
                       const Surroundings& surroundings,
                       ModelRequest& request) {
  request.format = arguments.value("--format").value_or("text");
  if (find_report_format(request.format) == nullptr)
    return invalid_argument("--format: unknown '" + request.format + "'" +
                            suggestion(request.format, report_format_names()));
  request.to_stdout = arguments.value("--output").value_or("-") == "-";
  const std::string color = arguments.value("--color").value_or("auto");
  constexpr std::string_view kKnown[] = {"auto", "always", "never"};
  if (std::ranges::find(kKnown, color) == std::end(kKnown))
    return invalid_argument("--color: unknown '" + color + "'" +
                            suggestion(color, kKnown));
  request.color = color == "always" ||
                  (color == "auto" && request.to_stdout &&
                   surroundings.out_is_terminal && !surroundings.no_color);
  request.options.map = !arguments.flag("--no-map");
  return ok_status();
}

Status read_request(const CommandContext& context, ModelRequest& request) {
  const Arguments& arguments = context.arguments;
  request.file = arguments.operand();
  if (request.file.empty())
    return invalid_argument("which model? write 'attnguard model FILE.gguf'");
  Status status = read_model_options(arguments, request);
  if (status.ok()) status = read_numbers(arguments, request);
  if (status.ok())
    status = read_appearance(arguments, context.surroundings, request);
  if (!status.ok()) return status;
  request.options.checks = arguments.values("--check");
  for (const std::string& id : request.options.checks)
    if (find_model_check(id) == nullptr)
      return invalid_argument("--check: unknown '" + id + "'" +
                              suggestion(id, model_check_ids()));
  if (const auto text = arguments.value("--text")) {
    request.text_file = *text;
    status = read_text(*text, request.options.text);
  }
  if (status.ok() && arguments.value("--text") && arguments.value("--tokens"))
    status = invalid_argument(
        "--tokens is of random texts: leave it out with "
        "--text");
  if (!status.ok()) return status;
  const Result<const ModelOpener*> opener = find_model_opener(request.file);
  if (!opener.ok()) return opener.status();
  request.opener = opener.value();
  return ok_status();
}

std::string replay_line(const ModelRequest& request,
                        const ModelResult& result) {
  std::string line = "attnguard model " + shell_quote(request.file);
  for (const auto& [name, value] : request.model_options)
    line += " --option " + shell_quote(name + "=" + value);
  line += request.options.text.empty()
              ? " --tokens " + std::to_string(result.num_tokens)
              : " --text " + shell_quote(request.text_file);
  // With a text it decides what tokens are replaced by.
  line += " --seed " + std::to_string(result.seed);
  if (request.options.rounding != ModelOptions().rounding)
    line += " --rounding " + shell_quote(request.rounding);
  for (const CheckResult& check : result.checks)
    if (check.verdict == Verdict::kViolation)
      return line + " --check " + check.check;
  return line;
}

std::string render(const ModelRequest& request, const ModelResult& result,
                   const std::string& command_line) {
  const ReportOptions options{.color = request.color,
                              .version = std::string(command_version()),
                              .command_line = command_line};
  if (request.format == "text") return model_text_report(result, options);
  if (request.format == "json") return model_json_report(result, options);
  return render_run(result, *find_report_format(request.format), options);
}

// Opens the model, runs the checks and writes the report.
int run_here(const ModelRequest& request, const std::string& command_line,
             std::ostream& out, std::ostream& err) {
  const Result<Model> model =
      request.opener->open(request.file, request.model_options);
  if (!model.ok()) {
    usage_error(err, model.status().message());
    const StatusCode code = model.status().code();
    return code == StatusCode::kEngineFailure ||
                   code == StatusCode::kOutOfMemory
               ? kExitEngineError
               : kExitUsage;
  }
  const std::int64_t context = model.value().context_length;
  const auto given = static_cast<std::int64_t>(request.options.text.size());
  if (context > 0 &&
      (given > 0 ? given : request.options.num_tokens) > context &&
      (given > 0 || request.options.num_tokens != ModelOptions().num_tokens))
    return usage_error(
        err,
        "the model takes " + std::to_string(context) +
            " tokens at most with these options",
        "a longer --option context=N may help, as far as the model goes");
  for (const std::int32_t token : request.options.text)
    if (token >= model.value().vocab_size)
      return usage_error(err, "--text: token " + std::to_string(token) +
                                  " is not in the model's vocabulary of " +
                                  std::to_string(model.value().vocab_size));
  ModelResult result = verify_model(model.value(), request.options);
  if (result.verdict == Verdict::kViolation)
    result.replay = replay_line(request, result);
  out << render(request, result, command_line);
  return exit_code(result.verdict);
}

// A process that crashed or hung still gives a report.
int report_death(const ModelRequest& request, const std::string& what,
                 const std::string& command_line, std::ostream& out) {
  ModelResult result;
  result.model = request.file;
  result.description = std::string(request.opener->name);
  result.num_tokens = request.options.num_tokens;
  result.seed = request.options.seed;
  result.random_tokens = request.options.text.empty();
  result.verdict = Verdict::kEngineError;
  result.note = "the process that ran the model " + what;
  out << render(request, result, command_line);
  return exit_code(result.verdict);
}

int run_apart(const ModelRequest& request, const std::string& command_line,
              std::ostream& out, std::ostream& err) {
  out.flush();
  err.flush();
  const Result<ChildResult> child = run_in_child(
      [&](std::ostream& its_out, std::ostream& its_err) {
        return run_here(request, command_line, its_out, its_err);
      },
      request.timeout);
  if (!child.ok()) {
    usage_error(err, child.status().message());
    return kExitEngineError;
  }
  const ChildResult& result = child.value();
  // The report is written last. Without one there is a message and a code that
  // says so; anything else is an exit from inside of the model.
  const bool answered =
      !result.out.empty() ||
      (!result.err.empty() && (result.exit_code == kExitUsage ||
                               result.exit_code == kExitEngineError));
  if (!result.by_itself() || !answered)
    return report_death(request, result.what_happened(), command_line, out);
  err << result.err;
  out << result.out;
  return result.exit_code;
}

int run_model(const CommandContext& context) {
  ModelRequest request;
  Status status = read_request(context, request);
  if (!status.ok())
    return usage_error(context.err, status.message(),
                       "'attnguard model --help' explains the options");
  OutputFile output;
  if (!request.to_stdout)
    status = output.open(*context.arguments.value("--output"), "report");
  if (!status.ok()) return usage_error(context.err, status.message());
  std::ostringstream report;
  const bool isolate = !context.arguments.flag("--no-isolate") &&
                       !context.surroundings.worker.empty();
  const int code =
      isolate ? run_apart(request, context.command_line, report, context.err)
              : run_here(request, context.command_line, report, context.err);
  if (report.str().empty()) return code;
  if (request.to_stdout)
    context.out << report.str();
  else
    status = output.commit(report.str());
  if (!status.ok()) return usage_error(context.err, status.message());
  return code;
}

}  // namespace

extern const CommandInfo kModelCommand = {
    .path = "model",
    .summary = "Verify a whole model, from its file",
    .operand = {"file", "A .gguf file, or another that a runtime here opens"},
    .options =
        {{"--option", "NAME=VALUE",
          "Of the model's runtime, such as flash=off or threads=1; README.md "
          "lists them; repeatable",
          true},
         {"--check", "ID",
          "Run only this check, see 'attnguard list model-checks'; repeatable",
          true},
         {"--tokens", "N", "Length of the random text; default: 48"},
         {"--seed", "N", "Of all that is random; default: 1"},
         {"--text", "FILE", "Token ids to read instead of random ones"},
         {"--rounding", "X",
          "How many roundings two ways to compute logits may differ by, see "
          "'attnguard explain model-prefix'; default: 32"},
         {"--format", "text|json|junit|sarif|github|markdown|html",
          "Of the report"},
         {"--output", "FILE",
          "Where the report goes; default: standard output"},
         {"--color", "auto|always|never", "Of the text report"},
         {"--no-map", nullptr, "Do not measure the influence map"},
         {"--timeout", "SECONDS", "Longest time of the run; default: 1800"},
         {"--no-isolate", nullptr,
          "Run the model in this process, e.g. under a debugger"}},
    .run = run_model,
};

}  // namespace attnguard
