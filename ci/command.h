// A sub-command as data: its options feed the parser, the help pages and
// whatever else lists them. A new command is one file in ci/commands/ and one
// line in ci/command_table.cc.
#ifndef ATTNGUARD_CI_COMMAND_H_
#define ATTNGUARD_CI_COMMAND_H_

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "ci/arguments.h"
#include "ci/cli.h"

namespace attnguard {

struct OptionSpec {
  const char* name;     // "--engine"
  const char* value;    // What it takes: "SPEC"; nullptr: a flag.
  const char* summary;  // For the help page.
  bool repeatable = false;
};

// The words that are no options: none, one, or any number of them.
struct OperandSpec {
  const char* name = nullptr;  // "file"; nullptr: the command takes none.
  const char* summary = "";
  bool repeatable = false;
};

struct CommandContext {
  const Arguments& arguments;
  const std::string& command_line;  // What reports say produced them.
  std::ostream& out;
  std::ostream& err;
  const Surroundings& surroundings;
};

struct CommandInfo {
  const char* path;  // "check"; "policy lint": a command of a group
  const char* summary;
  OperandSpec operand;
  std::vector<OptionSpec> options;
  int (*run)(const CommandContext& context);  // Returns the exit code.
};

// A word that only sub-commands follow: "policy".
struct CommandGroup {
  const char* name;
  const char* summary;
};

}  // namespace attnguard

#endif  // ATTNGUARD_CI_COMMAND_H_
