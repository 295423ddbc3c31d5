// What the reports count, in one place, so that no two formats disagree.
#ifndef ATTNGUARD_GUARD_REPORT_TOTALS_H_
#define ATTNGUARD_GUARD_REPORT_TOTALS_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "guard/finding/result.h"

namespace attnguard {

constexpr std::size_t kNumVerdicts = 6;

struct Totals {
  std::array<std::int64_t, kNumVerdicts> problems{};  // by verdict
  std::int64_t unchecked = 0;     // problems left out; they are in no verdict
  std::int64_t num_problems = 0;  // all of these
  std::int64_t violations = 0;    // findings that fail the run
  std::int64_t suppressed = 0;    // findings that are accepted
  std::int64_t warnings = 0;      // findings of checks that only warn
  std::int64_t expired = 0;       // suppressions that accept nothing any more
  std::int64_t engine_calls = 0;
  double engine_seconds = 0;
  double guard_seconds = 0;

  std::int64_t of(Verdict verdict) const {
    return problems[static_cast<std::size_t>(verdict)];
  }

  // The guard's part of the time, 0 to 1; 0 when no time was spent.
  double guard_share() const;
};

Totals totals_of(std::span<const RunResult> results);

// A violation that the policy's severity turned into a warning, unless all of
// its findings are accepted.
bool is_warning(const CheckResult& check);
bool has_warning(const ProblemResult& problem);

// Suppressions, and entries of a baseline, that were reached in one of the
// runs and accept nothing in any of them, in their order.
std::vector<const SuppressionUse*> unused_suppressions(
    std::span<const RunResult> results);

// Suppressions that have expired, in their order: the use of a run that reached
// it, if there is one.
std::vector<const SuppressionUse*> expired_suppressions(
    std::span<const RunResult> results);

// "row-sum, mass, on builtin:* with *seq_len_q=1 *"
std::string suppression_text(const SuppressionUse& use);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_REPORT_TOTALS_H_
