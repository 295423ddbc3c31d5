#include "guard/report/totals.h"

#include <algorithm>

#include "guard/report/report.h"

namespace attnguard {

double Totals::guard_share() const {
  const double all = engine_seconds + guard_seconds;
  return all > 0 ? guard_seconds / all : 0;
}

Totals totals_of(std::span<const RunResult> results) {
  Totals totals;
  for (const RunResult& run : results) {
    for (const ProblemResult& problem : run.problems) {
      ++totals.num_problems;
      ++totals.problems[static_cast<std::size_t>(problem.verdict)];
      totals.engine_calls += problem.engine_calls;
      totals.engine_seconds += problem.engine_seconds;
      totals.guard_seconds += problem.guard_seconds;
      for (const CheckResult& check : problem.checks)
        (check.warning_only ? totals.warnings : totals.violations) +=
            check.num_findings;
    }
  }
  return totals;
}

bool is_warning(const CheckResult& check) {
  return check.warning_only && check.verdict == Verdict::kViolation;
}

bool has_warning(const ProblemResult& problem) {
  return std::ranges::any_of(problem.checks, is_warning);
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
