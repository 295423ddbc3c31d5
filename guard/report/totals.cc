#include "guard/report/totals.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "guard/report/report.h"

namespace attnguard {
namespace {

// One suppression in all runs of a command.
struct SeenSuppression {
  const SuppressionUse* use;  // Of a run that reached it, if there is one.
  bool used = false;
};

// The runs of one command have one policy, of which each engine sees a part.
std::vector<SeenSuppression> seen_suppressions(
    std::span<const RunResult> results) {
  using Key = std::tuple<bool, std::string, std::string, std::string,
                         std::string, int, int>;
  std::map<Key, std::size_t> place;
  std::vector<SeenSuppression> all;
  for (const RunResult& run : results)
    for (const SuppressionUse& use : run.suppressions) {
      const Key key(use.baseline, use.check, use.engine, use.problem, use.kind,
                    use.location.line, use.location.column);
      const auto [at, added] = place.emplace(key, all.size());
      if (added) all.push_back({&use});
      SeenSuppression& seen = all[at->second];
      if (use.reached && !seen.use->reached) seen.use = &use;
      seen.used |= use.num_findings > 0;
    }
  return all;
}

}  // namespace

double Totals::guard_share() const {
  const double all = engine_seconds + guard_seconds;
  return all > 0 ? guard_seconds / all : 0;
}

Totals totals_of(std::span<const RunResult> results) {
  Totals totals;
  for (const RunResult& run : results) {
    for (const ProblemResult& problem : run.problems) {
      ++totals.num_problems;
      // Where the run may leave it out, its verdict is only that of no veto.
      ++(problem.unchecked
             ? totals.unchecked
             : totals.problems[static_cast<std::size_t>(problem.verdict)]);
      totals.engine_calls += problem.engine_calls;
      totals.engine_seconds += problem.engine_seconds;
      totals.guard_seconds += problem.guard_seconds;
      for (const CheckResult& check : problem.checks) {
        totals.suppressed += check.num_suppressed;
        (check.warning_only ? totals.warnings : totals.violations) +=
            check.num_findings - check.num_suppressed;
      }
    }
  }
  totals.expired = std::ssize(expired_suppressions(results));
  return totals;
}

bool is_warning(const CheckResult& check) {
  return check.warning_only && check.verdict == Verdict::kViolation &&
         !check.suppressed();
}

bool has_warning(const ProblemResult& problem) {
  return std::ranges::any_of(problem.checks, is_warning);
}

std::vector<const SuppressionUse*> unused_suppressions(
    std::span<const RunResult> results) {
  std::vector<const SuppressionUse*> unused;
  for (const SeenSuppression& seen : seen_suppressions(results))
    if (seen.use->reached && !seen.use->expired && !seen.used)
      unused.push_back(seen.use);
  return unused;
}

std::vector<const SuppressionUse*> expired_suppressions(
    std::span<const RunResult> results) {
  std::vector<const SuppressionUse*> expired;
  for (const SeenSuppression& seen : seen_suppressions(results))
    if (seen.use->expired) expired.push_back(seen.use);
  return expired;
}

std::string suppression_text(const SuppressionUse& use) {
  std::string text = use.check;
  if (!use.kind.empty()) text += ", " + use.kind + ",";
  if (use.engine != "*") text += " on " + use.engine;
  if (use.problem != "*") text += " with '" + use.problem + "'";
  return text;
}

Verdict combine_runs(std::span<const RunResult> results) {
  const auto any = [&](Verdict verdict) {
    return std::ranges::any_of(
        results, [&](const RunResult& run) { return run.verdict == verdict; });
  };
  if (any(Verdict::kViolation)) return Verdict::kViolation;
  if (any(Verdict::kEngineError)) return Verdict::kEngineError;
  const bool all_passed = std::ranges::all_of(
      results, [](const RunResult& r) { return r.verdict == Verdict::kPass; });
  return all_passed && !results.empty() ? Verdict::kPass
                                        : Verdict::kInconclusive;
}

}  // namespace attnguard
