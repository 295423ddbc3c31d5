// The sub-commands. Each returns the exit code.
#ifndef ATTNGUARD_CI_COMMANDS_H_
#define ATTNGUARD_CI_COMMANDS_H_

#include <iosfwd>
#include <string>
#include <string_view>

#include "ci/arguments.h"
#include "ci/cli.h"

namespace attnguard {

// `command_line` is what the report says produced it.
int check_command(const Arguments& arguments, const std::string& command_line,
                  std::ostream& out, std::ostream& err,
                  const Surroundings& surroundings);

int list_command(const Arguments& arguments, std::ostream& out,
                 std::ostream& err);
int explain_command(const Arguments& arguments, std::ostream& out,
                    std::ostream& err);
int policy_lint_command(const Arguments& arguments, std::ostream& out,
                        std::ostream& err);
int policy_print_command(const Arguments& arguments, std::ostream& out,
                         std::ostream& err);

int selftest_command(const Arguments& arguments, std::ostream& out,
                     std::ostream& err, const Surroundings& surroundings);

int lint_command(const Arguments& arguments, std::ostream& out,
                 std::ostream& err);

// "0.1.0"
std::string_view command_version();

}  // namespace attnguard

#endif  // ATTNGUARD_CI_COMMANDS_H_
