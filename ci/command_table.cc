#include "ci/command_table.h"

#include <algorithm>
#include <array>

namespace attnguard {

// clang-format off
extern const CommandInfo kCheckCommand;        // check
extern const CommandInfo kListCommand;         // list
extern const CommandInfo kExplainCommand;      // explain
extern const CommandInfo kPolicyLintCommand;   // policy lint
extern const CommandInfo kPolicyPrintCommand;  // policy print
extern const CommandInfo kSelftestCommand;     // selftest
extern const CommandInfo kLintCommand;         // lint
extern const CommandInfo kReplayCommand;       // replay
extern const CommandInfo kRuntimeOddsCommand;     // runtime odds
extern const CommandInfo kRuntimeOptionsCommand;  // runtime options
extern const CommandInfo kModelCommand;        // model

namespace {

constexpr std::array kCommands = {
    &kCheckCommand,
    &kListCommand,
    &kExplainCommand,
    &kPolicyLintCommand,
    &kPolicyPrintCommand,
    &kSelftestCommand,
    &kLintCommand,
    &kReplayCommand,
    &kRuntimeOddsCommand,
    &kRuntimeOptionsCommand,
    &kModelCommand,
};

constexpr std::array kGroups = {
    CommandGroup{"policy", "Work with policy files"},
    CommandGroup{"runtime", "The guard in a running engine"},
};
// clang-format on

}  // namespace

std::span<const CommandInfo* const> all_commands() { return kCommands; }

std::span<const CommandGroup> all_command_groups() { return kGroups; }

const CommandInfo* find_command(std::string_view path) {
  const auto found = std::ranges::find_if(
      kCommands,
      [&](const CommandInfo* command) { return command->path == path; });
  return found == kCommands.end() ? nullptr : *found;
}

std::string_view command_version() { return ATTNGUARD_VERSION; }

}  // namespace attnguard
