// `attnguard man`: the manual page, made of the command table.
#include <ostream>

#include "ci/command_table.h"

namespace attnguard {
namespace {

// Text as roff takes it: its own characters are spelled out.
std::string roff(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (out.empty() && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if (c == '\n')
      out += ' ';
    else
      out += c;
  }
  return out;
}

std::string synopsis(const CommandInfo& command) {
  std::string line = "attnguard " + std::string(command.path);
  if (!command.options.empty()) line += " [options]";
  if (command.operand.name == nullptr) return line;
  line += " " + std::string(command.operand.name);
  return command.operand.repeatable ? line + " ..." : line;
}

void write_command(std::ostream& out, const CommandInfo& command) {
  out << ".SS " << roff(synopsis(command)) << "\n"
      << roff(command.summary) << ".\n";
  if (command.operand.name != nullptr)
    out << ".TP\n.I " << roff(command.operand.name) << "\n"
        << roff(command.operand.summary) << "\n";
  for (const OptionSpec& option : command.options) {
    out << ".TP\n.BR " << roff(option.name);
    if (option.value != nullptr)
      out << " \" \" \"" << roff(option.value) << "\"";
    out << "\n" << roff(option.summary) << "\n";
  }
}

int run_man(const CommandContext& context) {
  std::ostream& out = context.out;
  out << ".TH ATTNGUARD 1 \"\" \"attnguard " << command_version()
      << "\" \"User Commands\"\n"
      << ".SH NAME\nattnguard \\- find what attention kernels see and must "
         "not\n"
      << ".SH SYNOPSIS\n.B attnguard\n.I command\n[\\fIoptions\\fR]\n"
      << ".SH DESCRIPTION\n"
      << "Checks attention kernels: the keys that a query sees and must not, "
         "those that it must see and does not, and rows whose weights do not "
         "sum to what they should.\n"
      << ".SH COMMANDS\n";
  for (const CommandInfo* command : all_commands())
    write_command(out, *command);
  out << ".SH EXIT STATUS\n";
  for (const auto& [code, meaning] :
       {std::pair{"0", "pass: checked, and nothing is wrong"},
        {"1", "violation: a property does not hold"},
        {"2", "usage or policy error: nothing was run"},
        {"3", "engine error: it crashed, hung, threw or returned an error"},
        {"4", "inconclusive: no evidence, or not everything was checked"},
        {"130, 143", "SIGINT or SIGTERM ended a run that had found nothing"}})
    out << ".TP\n.B " << code << "\n" << roff(meaning) << "\n";
  out << ".SH EXAMPLES\n.nf\n"
      << roff("attnguard check --engine builtin:tiled") << "\n"
      << roff("attnguard check --engine plugin:./libmine.so --jobs auto")
      << "\n"
      << roff("attnguard explain visibility") << "\n.fi\n";
  return kExitPass;
}

}  // namespace

extern const CommandInfo kManCommand = {
    .path = "man",
    .summary = "Print the manual page, for man -l",
    .operand = {},
    .options = {},
    .run = run_man,
};

}  // namespace attnguard
