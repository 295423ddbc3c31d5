// `attnguard policy diff`: what two policies differ in, in effect.
#include <ostream>

#include "ci/command_table.h"
#include "ci/usage.h"
#include "guard/check/check.h"
#include "guard/policy/policy_yaml.h"
#include "guard/report/safe_text.h"

namespace attnguard {
namespace {

constexpr int kExitDifferent = 1;  // As of diff(1).

int run_policy_diff(const CommandContext& context) {
  const auto& [arguments, command_line, out, err, surroundings] = context;
  const std::vector<std::string>& files = arguments.operands;
  if (files.size() != 2)
    return usage_error(err, "give two policies to compare",
                       "write 'attnguard policy diff BEFORE AFTER'; "
                       "'built-in' is one too");
  const std::optional<Policy> before = read_policy(files[0], err);
  const std::optional<Policy> after = read_policy(files[1], err);
  if (!before || !after) return kExitUsage;
  const std::string difference = diff_policies(*before, *after, check_ids());
  out << terminal_text(difference);
  return difference.empty() ? kExitPass : kExitDifferent;
}

}  // namespace

extern const CommandInfo kPolicyDiffCommand = {
    .path = "policy diff",
    .summary = "Say what two policies differ in; exit code 1 if they do",
    .operand = {"policies", "Two policy files, or 'built-in'", true},
    .options = {},
    .run = run_policy_diff,
};

}  // namespace attnguard
