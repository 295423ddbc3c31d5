// The steps of one row of attention in fp64, shared by the reference and by
// its variants:
//
//   score_row    s_j = scale * sum_k q_k k_jk
//   cap_scores   s_j = softcap * tanh(s_j / softcap)
//   add_alibi    s_j = s_j - slope * |j - position|
//   softmax_row  p_j = exp(s_j - m) / (exp(sink - m) + sum_j exp(s_j - m))
//   mix_values   o_c = sum_j p_j v_jc
//
// Every step visits the allowed keys only, so whatever lies in the others (NaN
// included) cannot reach the result. Scores and weights are indexed by
// kv_index; their elements at other keys are neither read nor written.
#ifndef ATTNGUARD_GUARD_ENGINE_ROW_STEPS_H_
#define ATTNGUARD_GUARD_ENGINE_ROW_STEPS_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "guard/base/tensor_view.h"
#include "guard/problem/key_ranges.h"
#include "guard/problem/problem.h"

namespace attnguard {

// The rows of one (batch, head) in fp64, channels contiguous.
struct Fp64Rows {
  const double* data = nullptr;  // Row 0, channel 0.
  std::int64_t stride = 0;       // Elements from row to row.

  const double* row(std::int64_t position) const {
    return data + position * stride;
  }
};

// Decodes the rows in `positions` into `buffer`; other rows are unspecified.
// A view that is fp64 with contiguous channels is used where it lies.
Fp64Rows fp64_rows(const ConstTensorView& view, std::int64_t batch,
                   std::int64_t head, const KeyRanges& positions,
                   std::vector<double>& buffer);

void score_row(const double* query, const Fp64Rows& key,
               std::int64_t head_dim_qk, double scale, const KeyRanges& allowed,
               double* scores);

void cap_scores(double softcap, const KeyRanges& allowed, double* scores);

// `position` is that of the query among the keys: RowPlace::bottom_right().
void add_alibi(double slope, std::int64_t position, const KeyRanges& allowed,
               double* scores);

// The soft-cap and the ALiBi of the problem, in their order.
void bend_scores(const Problem& problem, std::int64_t head,
                 const RowPlace& place, const KeyRanges& allowed,
                 double* scores);

// In place: scores become weights. `sink` is a logit that counts in the
// denominator only; -inf: none. Returns log(sum_j exp(s_j) + exp(sink)), which
// is -inf when there is neither key nor sink.
double softmax_row(const KeyRanges& allowed, double* scores,
                   double sink = -std::numeric_limits<double>::infinity());

// `output` holds head_dim_v elements and is overwritten; 0 when no key is
// allowed.
void mix_values(const double* weights, const Fp64Rows& value,
                std::int64_t head_dim_v, const KeyRanges& allowed,
                double* output);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_ENGINE_ROW_STEPS_H_
