// The only file that includes the command line parser.
#include "ci/arguments.h"

#include <CLI/CLI.hpp>

#include "guard/base/text.h"

namespace attnguard {
namespace {

using Texts = std::vector<std::string>;

constexpr const char* kFooter =
    "Exit codes: 0 pass, 1 violation, 2 usage or policy error,\n"
    "3 engine error, 4 inconclusive or nothing checked.";

// One option of a command. All collect a list, so that giving one twice is
// an error of ours and not the parser's.
struct Option {
  CLI::Option* parsed = nullptr;
  std::optional<std::string>* once = nullptr;  // Where its only value goes,
  Texts* many = nullptr;                       // or all of them.
};

// The commands and their options, as the parser knows them.
struct Grammar {
  CLI::App app{"Finds what attention kernels see and must not.", "attnguard"};
  CLI::App* check = nullptr;
  CLI::App* list = nullptr;
  CLI::App* explain = nullptr;
  CLI::App* policy = nullptr;
  CLI::App* lint = nullptr;  // Of policies.
  CLI::App* lint_models = nullptr;
  CLI::App* print = nullptr;
  CLI::App* selftest = nullptr;
  std::vector<Option> options;

  explicit Grammar(Arguments& into);
  CLI::App* command(CLI::App& parent, const char* name, const char* summary);
  void add_check(Arguments& into);
  void add_selftest(Arguments& into);
  void add_lint(Arguments& into);
  void add_option(CLI::App* to, const char* name, const char* value,
                  const char* summary, std::optional<std::string>* once,
                  Texts* many = nullptr);
};

CLI::App* Grammar::command(CLI::App& parent, const char* name,
                           const char* summary) {
  CLI::App* made = parent.add_subcommand(name, summary);
  made->allow_extras();  // So that we can name the nearest known option.
  return made;
}

void Grammar::add_option(CLI::App* to, const char* name, const char* value,
                         const char* summary, std::optional<std::string>* once,
                         Texts* many) {
  CLI::Option* option = to->add_option(
      name, [](const CLI::results_t&) { return true; }, summary);
  option->expected(1, CLI::detail::expected_max_vector_size)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->option_text(value);
  options.push_back({option, once, many});
}

void Grammar::add_check(Arguments& into) {
  check = command(app, "check", "Verify engines and report");
  check->footer(kFooter);
  add_option(check, "--engine", "SPEC",
             "The engine: adapter:engine, or plugin:PATH for your own shared "
             "library; repeat it for several",
             nullptr, &into.engines);
  add_option(check, "--policy", "FILE",
             "What to check and how strictly; default: built-in", &into.policy);
  add_option(check, "--problem", "LINE",
             "Check this problem instead of the policy's; repeatable", nullptr,
             &into.problems);
  add_option(check, "--check", "ID", "Run only this check; repeatable", nullptr,
             &into.checks);
  add_option(check, "--seed", "N", "Overrides the policy's seed", &into.seed);
  add_option(check, "--threads", "N", "Threads to use; default: all cores",
             &into.threads);
  add_option(check, "--coverage", "sampled|edges|full",
             "Overrides the policy's coverage", &into.coverage);
  add_option(check, "--format", "text|json|junit", "Of the report",
             &into.format);
  add_option(check, "--output", "FILE",
             "Where the report goes; default: standard output", &into.output);
  add_option(check, "--color", "auto|always|never", "Of the text report",
             &into.color);
  check
      ->add_flag("--no-map", into.no_map,
                 "Neither shrink failures nor draw the influence map nor "
                 "diagnose")
      ->disable_flag_override();
  add_option(check, "--timeout", "SECONDS",
             "Longest time of one call of an engine; default: 60",
             &into.timeout);
  check
      ->add_flag("--no-isolate", into.no_isolate,
                 "Run engines in this process, e.g. under a debugger: a crash "
                 "ends the run")
      ->disable_flag_override();
}

void Grammar::add_selftest(Arguments& into) {
  selftest = command(app, "selftest",
                     "Run the guard on known defects and correct engines");
  add_option(selftest, "--seed", "N", "Of the random problems; default: 1",
             &into.seed);
  add_option(selftest, "--problems", "N",
             "Random problems for each correct engine; default: 300",
             &into.random_problems);
  add_option(selftest, "--threads", "N",
             "Threads to use; default: 1, the problems are small",
             &into.threads);
  add_option(selftest, "--format", "text|json", "Of the report", &into.format);
}

void Grammar::add_lint(Arguments& into) {
  lint_models = command(app, "lint", "Find wrong attention in ONNX files");
  lint_models->add_option("files", into.files, "ONNX files; none is run")
      ->option_text(" ");
  add_option(lint_models, "--format", "text|json|github", "Of the report",
             &into.format);
}

Grammar::Grammar(Arguments& into) {
  app.allow_extras();
  app.require_subcommand(0, 1);
  app.set_version_flag("--version", "", "Print the version and exit");
  add_check(into);
  list = command(app, "list", "Print what there is to choose from");
  list->add_option("what", into.subject,
                   "engines, checks, masks, problems, formats, fields or "
                   "lint-rules")
      ->option_text(" ");
  add_option(list, "--policy", "FILE", "Whose problems; default: built-in",
             &into.policy);
  explain = command(app, "explain", "Explain a check or a lint rule");
  explain
      ->add_option("check", into.subject,
                   "The id; see 'attnguard list checks' and 'lint-rules'")
      ->option_text(" ");
  policy = command(app, "policy", "Work with policy files");
  policy->require_subcommand(0, 1);
  lint = command(*policy, "lint", "Find mistakes in a policy file");
  lint->add_option("file", into.subject, "The policy file")->option_text(" ");
  print = command(*policy, "print", "Print a policy, or the built-in one");
  add_option(print, "--policy", "FILE", "Printed in canonical form",
             &into.policy);
  add_selftest(into);
  add_lint(into);
  app.footer(kFooter);  // Last: sub-commands inherit it when they are made.
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

Status missing_command(CLI::App& app, const std::string& where,
                       std::initializer_list<std::string_view> known) {
  const std::vector<std::string_view> names(known);
  const Texts extras = app.remaining(true);
  if (extras.empty())
    return invalid_argument("no command given after '" + where + "'" +
                            suggestion("", names));
  if (extras.front().starts_with('-'))
    return unknown_option(app, extras.front());
  return invalid_argument("unknown command '" + extras.front() + "'" +
                          suggestion(extras.front(), names));
}

// Moves the collected values to where they belong.
Status collect(const Grammar& grammar) {
  for (const Option& option : grammar.options) {
    const std::string name = option.parsed->get_name();
    const Texts& values = option.parsed->results();
    for (const std::string& value : values) {
      if (value.starts_with("--"))
        return invalid_argument("option " + name +
                                " needs a value, but is followed by '" + value +
                                "'");
      if (value.empty())
        return invalid_argument("the value of option " + name + " is empty");
    }
    if (values.empty()) continue;
    if (option.many != nullptr) {
      *option.many = values;
      continue;
    }
    if (values.size() > 1)
      return invalid_argument("option " + name + " is given twice");
    *option.once = values.front();
  }
  return ok_status();
}

// Finds which command is given and what is wrong with its options.
Status read_grammar(Grammar& grammar, Arguments& into) {
  CLI::App& app = grammar.app;
  if (app.get_subcommands().empty())
    return missing_command(
        app, "attnguard",
        {"check", "list", "explain", "policy", "selftest", "lint"});
  const CLI::App* given = app.get_subcommands().front();
  if (given == grammar.policy) {
    if (given->get_subcommands().empty())
      return missing_command(*grammar.policy, "attnguard policy",
                             {"lint", "print"});
    given = given->get_subcommands().front();
  }
  into.command = given == grammar.check         ? Command::kCheck
                 : given == grammar.list        ? Command::kList
                 : given == grammar.explain     ? Command::kExplain
                 : given == grammar.lint        ? Command::kPolicyLint
                 : given == grammar.selftest    ? Command::kSelftest
                 : given == grammar.lint_models ? Command::kLint
                                                : Command::kPolicyPrint;
  const Status status = collect(grammar);
  return status.ok() ? check_extras(app, *given) : status;
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

Result<Arguments> parse_arguments(int argc, const char* const* argv) {
  Arguments arguments;
  Grammar grammar(arguments);
  try {
    grammar.app.parse(argc, argv);
  } catch (const CLI::CallForVersion&) {
    arguments.command = Command::kVersion;
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
