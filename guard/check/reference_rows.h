// Judging rows of a call against fp64 attention: what `reference`,
// `score-shift` and others share.
#ifndef ATTNGUARD_GUARD_CHECK_REFERENCE_ROWS_H_
#define ATTNGUARD_GUARD_CHECK_REFERENCE_ROWS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "guard/check/check.h"
#include "guard/engine/reference.h"

namespace attnguard {

struct RowIndex {
  std::int64_t batch = 0, head = 0, query = 0;
  auto operator<=>(const RowIndex&) const = default;
};

// The rows with an allowed key that a comparison with fp64 can afford.
struct RowChoice {
  std::vector<RowIndex> rows;
  std::int64_t of = 0;  // Rows with an allowed key.

  bool all() const { return of == static_cast<std::int64_t>(rows.size()); }
  std::string coverage() const;  // "every row", or "32 of 512 rows"
};

// Every row when that is cheap; otherwise first, last and tile-edge rows in
// rotation over heads, then random ones. `share` of the usual budget; `turn`
// chooses others.
RowChoice choose_rows(const Problem& problem, Coverage coverage,
                      std::uint64_t seed, double share = 1,
                      std::int64_t turn = 0);

// Calls judge(n, row) for every chosen row n with its fp64 attention on what
// the engine was given, in parallel.
void for_each_reference_row(
    const Observation& seen, const RowChoice& choice,
    const std::function<void(std::size_t, const ReferenceRow&)>& judge);

// What checks with several calls spend on each.
inline constexpr double kQuarterBudget = 0.25;

enum class Scores {
  kUsual,  // Of a few nats.
  kLarge,  // Of thousands. Where parts are merged by their log-sum-exps, those
           // round as scores do, and with them the mass of the row.
};

// Compares the chosen rows of the call's output with fp64 attention under the
// check's tolerance and adds a finding for each that differs.
void judge_rows(const CheckContext& context, const Observation& seen,
                const RowChoice& choice, Scores scores, FindingSink& sink);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_CHECK_REFERENCE_ROWS_H_
