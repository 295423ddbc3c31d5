// `attnguard policy schema`: the JSON Schema of policies, for editors.
#include <ostream>

#include "ci/command_table.h"
#include "guard/check/check.h"
#include "guard/policy/policy_yaml.h"

namespace attnguard {
namespace {

int run_policy_schema(const CommandContext& context) {
  context.out << policy_json_schema(check_ids());
  return kExitPass;
}

}  // namespace

extern const CommandInfo kPolicySchemaCommand = {
    .path = "policy schema",
    .summary = "Print the JSON Schema of policies, for editors",
    .operand = {},
    .options = {},
    .run = run_policy_schema,
};

}  // namespace attnguard
