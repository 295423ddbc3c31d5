// The command line, split into its parts. Values are still texts: the
// commands judge them.
#ifndef ATTNGUARD_CI_ARGUMENTS_H_
#define ATTNGUARD_CI_ARGUMENTS_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "guard/base/status.h"

namespace attnguard {

struct CommandInfo;

// What was given to one command. Options are asked for by their names, as in
// the command's own table; a name that is not there is a mistake in the
// command, and throws std::logic_error.
class Arguments {
 public:
  Arguments() = default;
  explicit Arguments(const CommandInfo& command) : command_(&command) {}

  // nullptr: the help page or the version was asked for.
  const CommandInfo* command() const { return command_; }
  std::string help;  // The page asked for.
  bool version = false;

  std::vector<std::string> operands;
  // The only operand, or empty.
  std::string operand() const {
    return operands.empty() ? std::string() : operands.front();
  }

  std::optional<std::string> value(std::string_view option) const;
  std::vector<std::string> values(std::string_view option) const;
  bool flag(std::string_view option) const;

  void add_value(const std::string& option, std::string value) {
    values_[option].push_back(std::move(value));
  }

 private:
  const std::vector<std::string>* find(std::string_view option) const;

  const CommandInfo* command_ = nullptr;
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
};

// kInvalidArgument: one line that says what is wrong and how to go on.
Result<Arguments> parse_arguments(int argc, const char* const* argv);

// The arguments as a line to paste into a shell, quoted where needed.
std::string shell_line(int argc, const char* const* argv);

}  // namespace attnguard

#endif  // ATTNGUARD_CI_ARGUMENTS_H_
