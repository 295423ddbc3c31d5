// `attnguard policy print`: a policy in canonical form.
#include <ostream>

#include "ci/command_table.h"
#include "ci/usage.h"
#include "guard/policy/policy_yaml.h"

namespace attnguard {
namespace {

int run_policy_print(const CommandContext& context) {
  const auto& [arguments, command_line, out, err, surroundings] = context;
  const std::optional<std::string> file = arguments.value("--policy");
  if (!file) {
    out << default_policy_text();
    return kExitPass;
  }
  const std::optional<Policy> policy = read_policy(file, err);
  if (!policy) return kExitUsage;
  out << print_policy(*policy);
  return kExitPass;
}

}  // namespace

extern const CommandInfo kPolicyPrintCommand = {
    .path = "policy print",
    .summary = "Print a policy, or the built-in one",
    .operand = {},
    .options = {{"--policy", "FILE", "Printed in canonical form"}},
    .run = run_policy_print,
};

}  // namespace attnguard
