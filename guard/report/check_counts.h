// How often each check of a run ended with each verdict: the table of every
// report that people read.
#ifndef ATTNGUARD_GUARD_REPORT_CHECK_COUNTS_H_
#define ATTNGUARD_GUARD_REPORT_CHECK_COUNTS_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "guard/finding/result.h"
#include "guard/report/totals.h"

namespace attnguard {

struct CheckCounts {
  struct Row {
    std::string check;
    std::array<std::int64_t, kNumVerdicts> problems{};  // By verdict.
    std::int64_t suppressed = 0;  // Violations that were accepted.
    std::int64_t findings = 0;

    std::int64_t of(Verdict verdict) const {
      return problems[static_cast<std::size_t>(verdict)];
    }
  };
  std::vector<Row> rows;          // In the order of the run.
  std::vector<Verdict> verdicts;  // Those that occur, and kPass.
  std::int64_t suppressed = 0;    // Of all rows; not among the verdicts.
};

CheckCounts count_checks(const RunResult& run);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_REPORT_CHECK_COUNTS_H_
