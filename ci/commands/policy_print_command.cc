// `attnguard policy print`: a policy in canonical form.
#include <ostream>

#include "ci/command_table.h"
#include "ci/usage.h"
#include "guard/check/check.h"
#include "guard/pipeline.h"
#include "guard/policy/policy_yaml.h"

namespace attnguard {
namespace {

int run_policy_print(const CommandContext& context) {
  const auto& [arguments, command_line, out, err, surroundings] = context;
  const std::optional<std::string> file = arguments.value("--policy");
  const bool resolved = arguments.flag("--resolved");
  const std::optional<std::string> engine = arguments.value("--engine");
  if (engine && !resolved)
    return usage_error(err, "--engine goes only with --resolved");
  const std::optional<Policy> policy =
      read_policy(file, err, surroundings.folder);
  if (!policy) return kExitUsage;
  out << schema_modeline();
  if (resolved)
    out << print_resolved(*policy, engine.value_or(""), check_ids());
  else if (policy->name == default_policy().name)
    out << default_policy_text();  // With its comments.
  else
    out << print_policy(*policy);
  return kExitPass;
}

}  // namespace

extern const CommandInfo kPolicyPrintCommand = {
    .path = "policy print",
    .summary = "Print a policy, or the built-in one",
    .operand = {},
    .options = {{"--policy", "FILE",
                 "Printed in canonical form; default: attnguard.yaml here or "
                 "above, else built-in"},
                {"--resolved", nullptr,
                 "Every value, with the file and line that it comes from"},
                {"--engine", "NAME",
                 "As it holds for this engine; goes with --resolved"}},
    .run = run_policy_print,
};

}  // namespace attnguard
