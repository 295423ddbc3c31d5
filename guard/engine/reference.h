// Attention in fp64, the textbook way: the gold reference, row by row.
//
// Rows with no allowed key are zero.
#ifndef ATTNGUARD_GUARD_ENGINE_REFERENCE_H_
#define ATTNGUARD_GUARD_ENGINE_REFERENCE_H_

#include <vector>

#include "guard/engine/engine.h"

namespace attnguard {

// The tensors of one call decoded to fp64 once, so that many rows can be
// computed from them. Dense [batch, head, position, channel].
struct ReferenceInputs {
  const Problem* problem = nullptr;
  ConstTensorView query, key, value;
};

// One row and the sums its error bound is made of (design: tolerances).
// p_j are the softmax weights, o the output; sums run over allowed keys.
struct ReferenceRow {
  std::int64_t num_keys = 0;         // n, the number of allowed keys
  std::vector<double> output;        // o[c], head_dim_v
  std::vector<double> weighted_abs;  // sum_j p_j |v_jc|
  std::vector<double> spread;        // sum_j p_j |v_jc - o_c|
  double score_magnitude = 0;        // max_j sum_k |q_k k_jk|, without scale
  double max_abs_score = 0;          // max_j |scale * q . k_j|
};

// Computes row (batch, head, q_index). `row` is reused between calls.
// Cost: 2 * seq_len_kv * (head_dim_qk + 2 head_dim_v) operations.
void reference_row(const ReferenceInputs& inputs, std::int64_t batch,
                   std::int64_t head, std::int64_t q_index, ReferenceRow& row);

// The largest |engine - reference| that rounding explains, for channel c of
// the row: design.md section 5, lambda = 5.
double reference_bound(const Problem& problem, const Numerics& numerics,
                       const ReferenceRow& row, std::int64_t channel);

// The reference as an engine, "builtin:reference": every row, OpenMP over
// (batch, head). Takes every problem.
Engine reference_engine();

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_ENGINE_REFERENCE_H_
