// `attnguard policy lint`: finds mistakes in a policy file.
#include <ostream>

#include "ci/command_table.h"
#include "ci/usage.h"

namespace attnguard {
namespace {

int run_policy_lint(const CommandContext& context) {
  const auto& [arguments, command_line, out, err, surroundings] = context;
  const std::string file = arguments.operand();
  if (file.empty())
    return usage_error(err, "lint which file?",
                       "write 'attnguard policy lint FILE'");
  const std::optional<Policy> policy = read_policy(file, err);
  if (!policy) return kExitUsage;
  const std::size_t count = policy->problems.size();
  out << file << ": OK, " << count
      << (count == 1 ? " problem\n" : " problems\n");
  return kExitPass;
}

}  // namespace

extern const CommandInfo kPolicyLintCommand = {
    .path = "policy lint",
    .summary = "Find mistakes in a policy file",
    .operand = {"file", "The policy file"},
    .options = {},
    .run = run_policy_lint,
};

}  // namespace attnguard
