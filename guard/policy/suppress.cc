#include "guard/policy/suppress.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace attnguard {
namespace {

bool is_judged(const CheckResult& check) {
  return check.verdict == Verdict::kPass ||
         check.verdict == Verdict::kViolation;
}

// How many findings of each kind nobody has accepted yet.
using Remaining = std::map<FindingKind, std::int64_t>;

void accept(const Suppression& suppression, Remaining& remaining,
            CheckResult& check) {
  for (auto& [kind, count] : remaining) {
    if (count == 0) continue;
    if (!suppression.kind.empty() &&
        suppression.kind != finding_kind_name(kind))
      continue;
    check.accepted.push_back({kind, count, suppression.reason,
                              suppression.location, suppression.baseline});
    check.num_suppressed += count;
    count = 0;
    for (Finding& finding : check.findings)
      if (finding.kind == kind) finding.suppressed = suppression.reason;
  }
}

SuppressionUse use_of(const Suppression& suppression, const Date& today) {
  SuppressionUse use;
  use.check = suppression.check;
  use.engine = suppression.engine;
  use.problem = suppression.problem;
  use.kind = suppression.kind;
  use.reason = suppression.reason;
  if (suppression.expires) use.expires = date_text(*suppression.expires);
  use.location = suppression.location;
  use.baseline = suppression.baseline;
  use.expired = suppression.is_expired(today);
  return use;
}

// An entry of a baseline is told from the others by check and problem, which
// it was matched by before.
bool took(const Suppression& suppression, const AcceptedFindings& accepted) {
  return accepted.baseline == suppression.baseline &&
         accepted.location == suppression.location &&
         accepted.reason == suppression.reason &&
         (suppression.kind.empty() ||
          suppression.kind == finding_kind_name(accepted.kind));
}

void count_uses(const Suppression& suppression, const ProblemResult& problem,
                SuppressionUse& use) {
  if (!suppression.fits_problem(problem.problem_line)) return;
  for (const CheckResult& check : problem.checks) {
    if (!is_judged(check) || !suppression.fits_check(check.check)) continue;
    use.reached = true;
    if (use.expired) continue;
    for (const AcceptedFindings& accepted : check.accepted)
      if (took(suppression, accepted))
        use.num_findings += accepted.num_findings;
  }
}

std::string expired_text(const SuppressionUse& use) {
  return use.location.file + ':' + std::to_string(use.location.line) + ':' +
         std::to_string(use.location.column) + ": the suppression of " +
         use.check + " expired on " + use.expires + " (" + use.reason +
         "); fix what it hides, or give it a new date";
}

}  // namespace

void suppress_findings(std::span<const Suppression> suppressions,
                       const Date& today, ProblemResult& result) {
  if (suppressions.empty()) return;
  for (CheckResult& check : result.checks) {
    if (check.verdict != Verdict::kViolation) continue;
    Remaining remaining = check.num_by_kind;
    for (const Suppression& suppression : suppressions)
      if (!suppression.is_expired(today) &&
          suppression.fits_check(check.check) &&
          suppression.fits_problem(result.problem_line))
        accept(suppression, remaining, check);
  }
}

void settle_suppressions(std::span<const Suppression> suppressions,
                         const Date& today, RunResult& run) {
  for (const Suppression& suppression : suppressions) {
    SuppressionUse use = use_of(suppression, today);
    for (const ProblemResult& problem : run.problems)
      count_uses(suppression, problem, use);
    if (use.expired && use.reached) {
      run.verdict = Verdict::kViolation;
      run.note += (run.note.empty() ? "" : "\n") + expired_text(use);
    }
    run.suppressions.push_back(std::move(use));
  }
}

std::span<const std::string_view> finding_kind_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (int kind = 0; kind <= static_cast<int>(FindingKind::kOutOfBounds);
         ++kind)
      all.push_back(finding_kind_name(static_cast<FindingKind>(kind)));
    return all;
  }();
  return names;
}

}  // namespace attnguard
