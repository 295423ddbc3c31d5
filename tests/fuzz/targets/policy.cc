// A policy file: whatever stands in it ends in a policy or in diagnostics, and
// a policy that was read survives printing.
#include <string_view>

#include "guard/check/check.h"
#include "guard/policy/policy_yaml.h"
#include "tests/fuzz/target.h"

using namespace attnguard;
using fuzz::require;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // What a file may hold is bounded elsewhere; long ones only slow this down.
  if (size > 8192) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto ids = check_ids();
  const PolicyParse parse = parse_policy(text, "policy.yaml", ids);
  if (!parse.diagnostics.empty())
    require(!format_diagnostics(parse.diagnostics).empty(), "an empty message");
  for (const PolicyDiagnostic& each : parse.diagnostics)
    require(!each.message.empty(), "a diagnostic without a message");
  require(parse.policy.has_value() || !parse.diagnostics.empty(),
          "no policy, and no reason");
  if (!parse.policy) return 0;
  const std::string printed = print_policy(*parse.policy);
  const PolicyParse again = parse_policy(printed, "printed.yaml", ids);
  require(again.policy.has_value(), "a printed policy is refused");
  require(print_policy(*again.policy) == printed,
          "a printed policy reads as another");
  return 0;
}
