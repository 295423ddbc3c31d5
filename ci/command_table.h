// Every sub-command.
#ifndef ATTNGUARD_CI_COMMAND_TABLE_H_
#define ATTNGUARD_CI_COMMAND_TABLE_H_

#include <span>
#include <string_view>

#include "ci/command.h"

namespace attnguard {

// In the order of the help page.
std::span<const CommandInfo* const> all_commands();
std::span<const CommandGroup> all_command_groups();

// nullptr when there is no such command.
const CommandInfo* find_command(std::string_view path);

// "0.1.0"
std::string_view command_version();

}  // namespace attnguard

#endif  // ATTNGUARD_CI_COMMAND_TABLE_H_
