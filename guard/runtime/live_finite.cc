// finite: finite inputs gave finite outputs, in every row of the call.
#include <cmath>

#include "guard/check/rows.h"
#include "guard/runtime/live_bounds.h"
#include "guard/runtime/live_check.h"

namespace attnguard::runtime_internal {
namespace {

// Rows that are looked at closely; one is enough to know.
constexpr int kMostBadRows = 8;

double work_finite(const LiveCall& live) {
  const Problem& p = live.problem;
  return static_cast<double>(p.batch * p.max_len_q() * p.num_heads) *
         (static_cast<double>(p.head_dim_v) + 16);
}

bool is_finite_row(const ConstTensorView& view, std::int64_t b, std::int64_t h,
                   std::int64_t position, std::int64_t channels) {
  return first_not_finite(view.dtype, view.at(b, h, position), view.strides[3],
                          channels) < 0;
}

// What the row may read is finite, and so is every score.
bool finite_inputs(const LiveCall& live, const RowIndex& row,
                   const KeyRanges& allowed) {
  const Problem& p = live.problem;
  const std::int64_t g = p.kv_head_of(row.head);
  if (!is_finite_row(live.call.query, row.batch, row.head, row.query,
                     p.head_dim_qk))
    return false;
  for (const KeyRange& range : allowed.ranges())
    for (std::int64_t j = range.begin; j < range.end; ++j)
      if (!is_finite_row(live.call.key, row.batch, g, j, p.head_dim_qk) ||
          !is_finite_row(live.call.value, row.batch, g, j, p.head_dim_v))
        return false;
  ReferenceRow& expected = live.shard.scratch.row;
  live.reference(row, allowed, expected);
  const double largest = dtype_info(live.numerics.accumulator).max_finite;
  return expected.score_magnitude < largest && expected.max_abs_score < largest;
}

void run_finite(const LiveCall& live, Judgement& judgement) {
  const Problem& p = live.problem;
  KeyRanges& allowed = live.shard.scratch.allowed;
  int bad = 0;
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t i = 0; i < p.len_q(b); ++i)
      for (std::int64_t h = 0; h < p.num_heads; ++h) {
        ++judgement.rows;
        if (is_finite_row(live.call.output, b, h, i, p.head_dim_v)) continue;
        if (++bad > kMostBadRows) return;
        const RowIndex row{b, h, i};
        live.allowed(b, i, allowed);
        if (allowed.empty()) continue;
        if (!finite_inputs(live, row, allowed)) {
          judgement.skipped = SkipReason::kInputNotFinite;
          continue;
        }
        const std::int64_t channel = first_not_finite(
            live.call.output.dtype, live.call.output.at(b, h, i),
            live.call.output.strides[3], p.head_dim_v);
        double value = 0;
        live.call.output.load_row(b, h, i, channel, 1, &value);
        judgement.sink.add(not_finite_finding(row, channel, value));
      }
}

}  // namespace

const LiveCheckInfo kLiveFinite = {.check = LiveCheck::kFinite,
                                   .passive = true,
                                   .first_guess = 1,
                                   .units = work_finite,
                                   .run = run_finite};

}  // namespace attnguard::runtime_internal
