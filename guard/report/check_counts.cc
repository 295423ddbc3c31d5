#include "guard/report/check_counts.h"

#include <algorithm>

namespace attnguard {

CheckCounts count_checks(const RunResult& run) {
  CheckCounts counts;
  std::array<std::int64_t, kNumVerdicts> sums{};
  for (const ProblemResult& problem : run.problems) {
    for (const CheckResult& check : problem.checks) {
      auto row =
          std::ranges::find(counts.rows, check.check, &CheckCounts::Row::check);
      if (row == counts.rows.end()) {
        counts.rows.push_back({.check = check.check});
        row = counts.rows.end() - 1;
      }
      row->findings += check.num_findings;
      if (check.suppressed()) {
        ++row->suppressed;
        ++counts.suppressed;
        continue;
      }
      const auto verdict = static_cast<std::size_t>(check.verdict);
      ++row->problems[verdict];
      ++sums[verdict];
    }
  }
  for (std::size_t v = 0; v < kNumVerdicts; ++v) {
    const auto verdict = static_cast<Verdict>(v);
    if (sums[v] > 0 || verdict == Verdict::kPass)
      counts.verdicts.push_back(verdict);
  }
  return counts;
}

}  // namespace attnguard
