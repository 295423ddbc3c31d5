// `attnguard policy lint`: finds mistakes in a policy file.
#include <algorithm>
#include <optional>
#include <ostream>

#include "ci/command_table.h"
#include "ci/usage.h"
#include "guard/base/date.h"
#include "guard/report/safe_text.h"

namespace attnguard {
namespace {

// A suppression that fits no problem of the policy was mistyped, or is old.
void warn_of_idle(const Policy& policy, std::ostream& err) {
  for (const Suppression& one : policy.suppressions) {
    const bool fits =
        std::ranges::any_of(policy.problems, [&](const PolicyProblem& problem) {
          return one.fits_problem(problem.problem.text());
        });
    if (fits) continue;
    err << terminal_line(one.location.file) << ':' << one.location.line << ':'
        << one.location.column
        << ": warning: the suppression fits no problem of this policy\n";
  }
}

// It is right until its day is over, and then fails runs.
void warn_of_expired(const Policy& policy, const std::optional<Date>& today,
                     std::ostream& err) {
  for (const Suppression& one : policy.suppressions)
    if (one.is_expired(today ? *today : today_utc()))
      err << terminal_line(one.location.file) << ':' << one.location.line << ':'
          << one.location.column << ": warning: the suppression expired on "
          << date_text(*one.expires)
          << ", and fails every run that reaches it; give it a new date or "
             "remove it\n";
}

int run_policy_lint(const CommandContext& context) {
  const auto& [arguments, command_line, out, err, surroundings] = context;
  const std::string file = arguments.operand();
  if (file.empty())
    return usage_error(err, "lint which file?",
                       "write 'attnguard policy lint FILE'");
  const std::optional<Policy> policy = read_policy(file, err);
  if (!policy) return kExitUsage;
  warn_of_idle(*policy, err);
  warn_of_expired(*policy, surroundings.today, err);
  const std::size_t count = policy->problems.size();
  out << terminal_line(file) << ": OK, " << count
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
