// recompute: a few rows are computed again in fp64 and must agree within
// rounding. The one passive check that sees masks and scales.
#include "guard/runtime/live_bounds.h"
#include "guard/runtime/live_check.h"

namespace attnguard::runtime_internal {
namespace {

// Of one row: the caller decides how many.
double work_recompute(const LiveCall& live) {
  const Problem& p = live.problem;
  return static_cast<double>(
      p.max_len_kv() * (2 * p.head_dim_qk + 3 * p.head_dim_v) + 256);
}

void run_recompute(const LiveCall& live, Judgement& judgement) {
  Scratch& scratch = live.shard.scratch;
  for (std::int64_t n = 0; n < live.rows; ++n) {
    RowIndex row;
    if (!live.picked(n, row)) return;
    live.allowed(row.batch, row.query, scratch.allowed);
    if (scratch.allowed.empty() && !judged_when_empty(live.problem)) continue;
    live.reference(row, scratch.allowed, scratch.row);
    if (finite_row(live.numerics, scratch.row))
      compare_row(live, row, scratch.row, judgement);
    else
      judgement.skipped = SkipReason::kInputNotFinite;
  }
}

}  // namespace

const LiveCheckInfo kLiveRecompute = {.check = LiveCheck::kRecompute,
                                      .passive = true,
                                      .first_guess = 1.5,
                                      .units = work_recompute,
                                      .run = run_recompute};

}  // namespace attnguard::runtime_internal
