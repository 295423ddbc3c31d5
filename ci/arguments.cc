// The only file that includes the command line parser.
#include "ci/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <deque>
#include <stdexcept>

#include "ci/command_table.h"
#include "guard/base/text.h"

namespace attnguard {
namespace {

using Texts = std::vector<std::string>;

constexpr const char* kFooter =
    "Exit codes: 0 pass, 1 violation, 2 usage or policy error,\n"
    "3 engine error, 4 inconclusive or nothing checked.";

// One command as the parser knows it. Options collect lists, so that giving
// one twice is an error of ours and not the parser's.
struct Parsed {
  const CommandInfo* info = nullptr;
  CLI::App* app = nullptr;
  std::vector<CLI::Option*> options;  // In the order of info->options.
  Texts operands;
};

struct Grammar {
  CLI::App app{"Finds what attention kernels see and must not.", "attnguard"};
  std::map<std::string_view, CLI::App*> groups;
  std::deque<Parsed> commands;  // CLI11 keeps pointers into them.

  Grammar();
  CLI::App* parent_of(std::string_view path);
  void add(const CommandInfo& info);
  const Parsed* given() const;
};

CLI::App* add_subcommand(CLI::App& parent, const std::string& name,
                         const char* summary) {
  CLI::App* made = parent.add_subcommand(name, summary);
  made->allow_extras();  // So that we can name the nearest known option.
  return made;
}

CLI::Option* add_option(CLI::App& to, const OptionSpec& spec) {
  if (spec.value == nullptr)
    return to.add_flag(spec.name, spec.summary)->disable_flag_override();
  CLI::Option* option = to.add_option(
      spec.name, [](const CLI::results_t&) { return true; }, spec.summary);
  return option->expected(1, CLI::detail::expected_max_vector_size)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->option_text(spec.value);
}

// The group's parser, or the whole program's.
CLI::App* Grammar::parent_of(std::string_view path) {
  const std::size_t blank = path.find(' ');
  if (blank == path.npos) return &app;
  const std::string_view name = path.substr(0, blank);
  CLI::App*& group = groups[name];
  if (group != nullptr) return group;
  const char* summary = "";
  for (const CommandGroup& known : all_command_groups())
    if (known.name == name) summary = known.summary;
  group = add_subcommand(app, std::string(name), summary);
  group->require_subcommand(0, 1);
  return group;
}

void Grammar::add(const CommandInfo& info) {
  Parsed& command = commands.emplace_back();
  command.info = &info;
  const std::string_view path = info.path;
  command.app = add_subcommand(*parent_of(path),
                               std::string(path.substr(path.find(' ') + 1)),
                               info.summary);
  command.app->footer(kFooter);
  const OperandSpec& operand = info.operand;
  if (operand.name != nullptr)
    command.app->add_option(operand.name, command.operands, operand.summary)
        ->option_text(" ");
  for (const OptionSpec& option : info.options)
    command.options.push_back(add_option(*command.app, option));
}

Grammar::Grammar() {
  app.allow_extras();
  app.require_subcommand(0, 1);
  app.set_version_flag("--version", "", "Print the version and exit");
  for (const CommandInfo* command : all_commands()) add(*command);
  app.footer(kFooter);
}

const Parsed* Grammar::given() const {
  for (const Parsed& command : commands)
    if (command.app->parsed()) return &command;
  return nullptr;
}

Status unknown_option(const CLI::App& app, const std::string& given) {
  const std::string name = given.substr(0, given.find('='));
  Texts known;
  for (const CLI::Option* option : app.get_options())
    if (!option->get_lnames().empty())
      known.push_back("--" + option->get_lnames().front());
  const std::vector<std::string_view> names(known.begin(), known.end());
  return invalid_argument("unknown option '" + name + "'" +
                          suggestion(name, names));
}

// What the parser could not place is an unknown option or one word too many.
Status check_extras(CLI::App& app, const CLI::App& command) {
  const Texts extras = app.remaining(true);
  if (extras.empty()) return ok_status();
  for (const std::string& extra : extras)
    if (extra.starts_with('-')) return unknown_option(command, extra);
  return invalid_argument("unexpected argument '" + extras.front() + "'");
}

// The words that may follow: those behind "policy ", or the first ones.
Texts words_after(std::string_view group) {
  Texts words;
  for (const CommandInfo* command : all_commands()) {
    std::string_view path = command->path;
    if (!group.empty()) {
      if (!path.starts_with(std::string(group) + ' ')) continue;
      path.remove_prefix(group.size() + 1);
    }
    const std::string word(path.substr(0, path.find(' ')));
    if (words.empty() || words.back() != word) words.push_back(word);
  }
  return words;
}

Status missing_command(CLI::App& app, std::string_view group) {
  const Texts words = words_after(group);
  const std::vector<std::string_view> names(words.begin(), words.end());
  const Texts extras = app.remaining(true);
  if (extras.empty())
    return invalid_argument("no command given after 'attnguard" +
                            (group.empty() ? "" : ' ' + std::string(group)) +
                            "'" + suggestion("", names));
  if (extras.front().starts_with('-'))
    return unknown_option(app, extras.front());
  return invalid_argument("unknown command '" + extras.front() + "'" +
                          suggestion(extras.front(), names));
}

Status check_value(const std::string& name, const std::string& value) {
  if (value.starts_with("--"))
    return invalid_argument("option " + name +
                            " needs a value, but is followed by '" + value +
                            "'");
  if (value.empty())
    return invalid_argument("the value of option " + name + " is empty");
  return ok_status();
}

// Copies the values of one command to where it finds them.
Status collect(const Parsed& command, Arguments& into) {
  into.operands = command.operands;
  if (into.operands.size() > 1 && !command.info->operand.repeatable)
    return invalid_argument("unexpected argument '" + into.operands[1] + "'");
  for (std::size_t i = 0; i < command.options.size(); ++i) {
    const OptionSpec& spec = command.info->options[i];
    const CLI::Option& option = *command.options[i];
    if (spec.value == nullptr) {
      if (option.count() > 0) into.add_value(spec.name, "true");
      continue;
    }
    const Texts& values = option.results();
    for (const std::string& value : values) {
      const Status status = check_value(spec.name, value);
      if (!status.ok()) return status;
      into.add_value(spec.name, value);
    }
    if (values.size() > 1 && !spec.repeatable)
      return invalid_argument("option " + std::string(spec.name) +
                              " is given twice");
  }
  return ok_status();
}

// Finds which command is given and what is wrong with its options.
Status read_grammar(Grammar& grammar, Arguments& into) {
  CLI::App& app = grammar.app;
  const Parsed* command = grammar.given();
  if (command == nullptr) {
    for (const auto& [name, group] : grammar.groups)
      if (group->parsed()) return missing_command(*group, name);
    return missing_command(app, "");
  }
  into = Arguments(*command->info);
  const Status status = collect(*command, into);
  return status.ok() ? check_extras(app, *command->app) : status;
}

// The parser's own complaints. Its texts start with the option's name.
Status parser_error(const CLI::ParseError& error) {
  const std::string text = error.what();
  const std::string name = text.substr(0, text.find(':'));
  if (text.find("flag override") != text.npos)
    return invalid_argument("option --" + text.substr(0, text.find(' ')) +
                            " takes no value");
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr)
    return invalid_argument("option " + name + " needs a value");
  return invalid_argument("cannot read the command line: " +
                          text.substr(0, text.find('\n')));
}

}  // namespace

const std::vector<std::string>* Arguments::find(std::string_view option) const {
  const auto known = [&](const OptionSpec& spec) {
    return spec.name == option;
  };
  if (command_ == nullptr || std::ranges::none_of(command_->options, known))
    throw std::logic_error("the command has no option " + std::string(option));
  const auto found = values_.find(option);
  return found == values_.end() ? nullptr : &found->second;
}

std::optional<std::string> Arguments::value(std::string_view option) const {
  const auto* given = find(option);
  if (given == nullptr) return std::nullopt;
  return given->back();
}

std::vector<std::string> Arguments::values(std::string_view option) const {
  const auto* given = find(option);
  return given == nullptr ? std::vector<std::string>() : *given;
}

bool Arguments::flag(std::string_view option) const {
  return find(option) != nullptr;
}

Result<Arguments> parse_arguments(int argc, const char* const* argv) {
  Arguments arguments;
  Grammar grammar;
  try {
    grammar.app.parse(argc, argv);
  } catch (const CLI::CallForVersion&) {
    arguments.version = true;
    return arguments;
  } catch (const CLI::CallForHelp&) {
    arguments.help = grammar.app.help();
    return arguments;
  } catch (const CLI::ParseError& error) {
    return parser_error(error);
  }
  const Status status = read_grammar(grammar, arguments);
  if (!status.ok()) return status;
  return arguments;
}

std::string shell_line(int argc, const char* const* argv) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
      "_-+=:,./@%";
  std::string line = "attnguard";
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    line += ' ';
    if (!word.empty() && word.find_first_not_of(kPlain) == word.npos) {
      line += word;
      continue;
    }
    line += '\'';
    for (char c : word) line += c == '\'' ? "'\\''" : std::string(1, c);
    line += '\'';
  }
  return line;
}

}  // namespace attnguard
