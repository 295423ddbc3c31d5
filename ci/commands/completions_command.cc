// `attnguard completions SHELL`: what the shell offers behind a Tab, made of
// the command table.
#include <array>
#include <ostream>
#include <vector>

#include "ci/command_table.h"
#include "ci/usage.h"
#include "guard/base/text.h"
#include "guard/check/check.h"

namespace attnguard {
namespace {

// The words that an option's value is one of; none: it is something else.
std::vector<std::string> words_of(const OptionSpec& option) {
  std::vector<std::string> words;
  if (option.value == nullptr) return words;
  if (std::string_view(option.name) == "--check")
    for (std::string_view id : check_ids()) words.emplace_back(id);
  // "text|json|junit", but not "I/N|auto".
  const std::string value = option.value;
  if (value.find('|') == value.npos) return words;
  for (std::string_view word : split(value, '|'))
    if (word.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") == word.npos)
      words.emplace_back(word);
  return words;
}

std::string joined_words(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words)
    line += (line.empty() ? "" : " ") + word;
  return line;
}

std::string options_of(const CommandInfo& command) {
  std::vector<std::string> names = {"--help"};
  for (const OptionSpec& option : command.options)
    names.emplace_back(option.name);
  return joined_words(names);
}

// The words that may follow "attnguard" or "attnguard GROUP".
std::string next_words(std::string_view group) {
  std::vector<std::string> words;
  for (const CommandInfo* command : all_commands()) {
    std::string_view path = command->path;
    if (!group.empty()) {
      if (!path.starts_with(std::string(group) + " ")) continue;
      path.remove_prefix(group.size() + 1);
    }
    const std::string word(path.substr(0, path.find(' ')));
    if (words.empty() || words.back() != word) words.push_back(word);
  }
  return joined_words(words);
}

void write_bash(std::ostream& out) {
  out << R"(# bash completion for attnguard
_attnguard() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
  local command=${COMP_WORDS[1]}
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W ")"
      << next_words("") << R"( --help --version" -- "$word"))
    return
  fi
  case $command in
)";
  for (const CommandGroup& group : all_command_groups())
    out << "    " << group.name << ")\n      if ((COMP_CWORD == 2)); then\n"
        << "        COMPREPLY=($(compgen -W \"" << next_words(group.name)
        << "\" -- \"$word\"))\n        return\n      fi\n"
        << "      command+=\" ${COMP_WORDS[2]}\" ;;\n";
  out << "  esac\n  case $command:$before in\n";
  for (const CommandInfo* command : all_commands())
    for (const OptionSpec& option : command->options) {
      if (option.value == nullptr) continue;
      const std::string words = joined_words(words_of(option));
      const bool folder = std::string_view(option.value) == "DIR";
      out << "    '" << command->path << ":" << option.name << "')\n"
          << "      COMPREPLY=($(compgen "
          << (words.empty() ? folder ? "-d" : "-f" : "-W \"" + words + "\"")
          << " -- \"$word\"))\n      return ;;\n";
    }
  out << "  esac\n  case $word in\n    -*) ;;\n"
         "    *)\n      COMPREPLY=($(compgen -f -- \"$word\"))\n"
         "      return ;;\n  esac\n  case $command in\n";
  for (const CommandInfo* command : all_commands())
    out << "    '" << command->path << "') COMPREPLY=($(compgen -W \""
        << options_of(*command) << "\" -- \"$word\")) ;;\n";
  out << "  esac\n}\ncomplete -o filenames -F _attnguard attnguard\n";
}

// Inside of '...[...]': quotes and brackets are spelled out.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\'')
      out += "'\\''";
    else if (c == '[' || c == ']' || c == ':' || c == '\\')
      out += std::string("\\") + c;
    else
      out += c;
  }
  return out;
}

void write_zsh(std::ostream& out) {
  out << "#compdef attnguard\n_attnguard() {\n"
         "  local command=$words[2]\n  case $command in\n";
  for (const CommandGroup& group : all_command_groups())
    out << "    " << group.name << ") command+=\" $words[3]\" ;;\n";
  out << "  esac\n  if ((CURRENT == 2)); then\n    compadd -- "
      << next_words("") << "\n    return\n  fi\n";
  for (const CommandGroup& group : all_command_groups())
    out << "  if ((CURRENT == 3)) && [[ $words[2] == " << group.name
        << " ]]; then\n    compadd -- " << next_words(group.name)
        << "\n    return\n  fi\n";
  out << "  case $command in\n";
  for (const CommandInfo* command : all_commands()) {
    out << "    '" << command->path << "')\n      _arguments \\\n";
    for (const OptionSpec& option : command->options) {
      out << "        '" << (option.repeatable ? "*" : "") << option.name << "["
          << zsh_text(option.summary) << "]";
      const std::string words = joined_words(words_of(option));
      if (option.value != nullptr)
        out << ":" << zsh_text(option.value) << ":"
            << (words.empty() ? "_files" : "(" + words + ")");
      out << "' \\\n";
    }
    out << "        '*:file:_files' ;;\n";
  }
  out << "  esac\n}\n_attnguard \"$@\"\n";
}

void write_fish(std::ostream& out) {
  out << "# fish completion for attnguard\n"
         "function __attnguard_is\n"
         "  set -l words (commandline -opc)\n"
         "  test (string join ' ' -- $words[2..(math 1 + (count $argv))]) = "
         "(string join ' ' -- $argv)\nend\n"
      << "complete -c attnguard -n __fish_use_subcommand -f -a '"
      << next_words("") << "'\n";
  for (const CommandGroup& group : all_command_groups())
    out << "complete -c attnguard -n '__attnguard_is " << group.name
        << "; and test (count (commandline -opc)) -eq 2' -f -a '"
        << next_words(group.name) << "'\n";
  for (const CommandInfo* command : all_commands())
    for (const OptionSpec& option : command->options) {
      out << "complete -c attnguard -n '__attnguard_is " << command->path
          << "' -l " << std::string_view(option.name).substr(2);
      if (option.value != nullptr) out << " -r";
      const std::string words = joined_words(words_of(option));
      if (!words.empty()) out << " -f -a '" << words << "'";
      std::string summary;
      for (char c : std::string_view(option.summary))
        summary +=
            c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
      out << " -d '" << summary << "'\n";
    }
}

struct Shell {
  std::string_view name;
  void (*write)(std::ostream& out);
};
constexpr std::array kShells = {Shell{"bash", write_bash},
                                Shell{"zsh", write_zsh},
                                Shell{"fish", write_fish}};

int run_completions(const CommandContext& context) {
  const std::string name = context.arguments.operand();
  std::vector<std::string_view> known;
  for (const Shell& shell : kShells) {
    known.push_back(shell.name);
    if (shell.name != name) continue;
    shell.write(context.out);
    return kExitPass;
  }
  return usage_error(
      context.err,
      (name.empty() ? "no shell given" : "unknown shell '" + name + "'") +
          suggestion(name, known));
}

}  // namespace

extern const CommandInfo kCompletionsCommand = {
    .path = "completions",
    .summary = "Print a shell's completions",
    .operand = {"shell", "bash, zsh or fish"},
    .options = {},
    .run = run_completions,
};

}  // namespace attnguard
