// The steps of one row of attention in fp64, shared by the reference and by
// its variants:
//
//   score_row    s_j = scale * sum_k q_k k_jk
//   softmax_row  p_j = exp(s_j - max s) / sum_j exp(s_j - max s)
//   mix_values   o_c = sum_j p_j v_jc
//
// Every step visits the allowed keys only, so whatever lies in the others (NaN
// included) cannot reach the result. Scores and weights are indexed by
// kv_index; their elements at other keys are neither read nor written.
#ifndef ATTNGUARD_GUARD_ENGINE_ROW_STEPS_H_
#define ATTNGUARD_GUARD_ENGINE_ROW_STEPS_H_

#include <cstdint>
#include <vector>

#include "guard/base/tensor_view.h"
#include "guard/problem/key_ranges.h"

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

// In place: scores become weights. Nothing happens when no key is allowed.
void softmax_row(const KeyRanges& allowed, double* scores);

// `output` holds head_dim_v elements and is overwritten; 0 when no key is
// allowed.
void mix_values(const double* weights, const Fp64Rows& value,
                std::int64_t head_dim_v, const KeyRanges& allowed,
                double* output);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_ENGINE_ROW_STEPS_H_
