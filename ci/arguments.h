// The command line, split into its parts. Values are still texts: the
// commands judge them.
#ifndef ATTNGUARD_CI_ARGUMENTS_H_
#define ATTNGUARD_CI_ARGUMENTS_H_

#include <optional>
#include <string>
#include <vector>

#include "guard/base/status.h"

namespace attnguard {

enum class Command {
  kHelp,
  kVersion,
  kCheck,
  kList,
  kExplain,
  kPolicyLint,
  kPolicyPrint,
  kSelftest,
  kLint,
};

struct Arguments {
  Command command = Command::kHelp;
  std::string help;     // The page asked for; only for kHelp.
  std::string subject;  // What to list or explain; the file to lint.

  std::vector<std::string> files;  // Model files to lint.
  std::vector<std::string> engines;
  std::vector<std::string> problems;
  std::vector<std::string> checks;
  std::optional<std::string> policy;
  std::optional<std::string> seed;
  std::optional<std::string> threads;
  std::optional<std::string> random_problems;
  std::optional<std::string> coverage;
  std::optional<std::string> format;
  std::optional<std::string> output;
  std::optional<std::string> color;
  std::optional<std::string> timeout;
  bool no_map = false;
  bool no_isolate = false;
};

// kInvalidArgument: one line that says what is wrong and how to go on.
Result<Arguments> parse_arguments(int argc, const char* const* argv);

// The arguments as a line to paste into a shell, quoted where needed.
std::string shell_line(int argc, const char* const* argv);

}  // namespace attnguard

#endif  // ATTNGUARD_CI_ARGUMENTS_H_
