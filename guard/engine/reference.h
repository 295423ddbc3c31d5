// Attention in fp64, the textbook way: the gold reference, row by row.
//
//   s_j = scale * sum_k q_k k_jk        p_j = exp(s_j) / sum_j exp(s_j)
//   o_c = sum_j p_j v_jc                sums over the row's allowed keys
//
// with the problem's soft-cap, ALiBi and sink (see row_steps.h). A row with no
// allowed key follows Problem::empty_row (kAny: zero). Keys that are not
// allowed are never looked at, so NaN or Inf there does not reach the result.
#ifndef ATTNGUARD_GUARD_ENGINE_REFERENCE_H_
#define ATTNGUARD_GUARD_ENGINE_REFERENCE_H_

#include <cstdint>
#include <vector>

#include "guard/engine/engine.h"

namespace attnguard {

// The tensors of one call, on the host, any dtype and strides. Each row
// decodes the keys and values that it sees; where many rows are judged, give
// decoded() views instead and no row decodes anything.
struct ReferenceInputs {
  const Problem* problem = nullptr;
  ConstTensorView query;  // [batch, num_heads,    seq_len_q,  head_dim_qk]
  ConstTensorView key;    // [batch, num_kv_heads, seq_len_kv, head_dim_qk]
  ConstTensorView value;  // [batch, num_kv_heads, seq_len_kv, head_dim_v]
};

// Keys and values of a call decoded to fp64 once, for callers that compute
// many rows. Costs 8 bytes an element. Must outlive the inputs it gives.
class DecodedInputs {
 public:
  explicit DecodedInputs(const ReferenceInputs& inputs);

  // The same call; key and value are fp64, dense.
  ReferenceInputs inputs() const;

 private:
  ReferenceInputs inputs_;
  std::vector<double> key_;
  std::vector<double> value_;
};

// One row and the sums its error bound is made of (see reference_bound). p_j
// are the softmax weights, o the output; sums run over allowed keys.
struct ReferenceRow {
  std::int64_t num_keys = 0;         // n, the number of allowed keys
  std::vector<double> output;        // o_c, head_dim_v
  std::vector<double> weighted_abs;  // sum_j p_j |v_jc|
  std::vector<double> spread;        // sum_j p_j |v_jc - o_c|, the sink's v 0
  std::vector<double> total_abs;     // sum_j |v_jc|
  std::vector<double> weights;       // p_j, index: kv_index; others unset
  double mass = 0;                   // sum_j p_j: 1, or less beside a sink
  double lse = 0;                    // log(sum_j exp(s_j) + exp(sink))
  double score_magnitude = 0;        // max_j sum_k |q_k k_jk|, without scale
  double max_abs_score = 0;          // max_j |scale * q . k_j| + |bias|, or
                                     // |sink| where that is larger

  // For stored types that share one step among the channels of a block. The
  // row's largest channel stands for the block's.
  double key_block_magnitude = 0;    // max_j max_k |k_jk| * sum_k |q_k|
  double value_block_magnitude = 0;  // sum_j p_j max_c |v_jc|
};

// Computes row (batch, head, q_index); q_index is below the entry's own
// length. `row` is reused between calls.
// Cost: about 4 * seq_len_kv * (head_dim_qk + head_dim_v) operations.
void reference_row(const ReferenceInputs& inputs, std::int64_t batch,
                   std::int64_t head, std::int64_t q_index, ReferenceRow& row);

// The largest |engine - reference| that rounding explains, for channel c of
// the row:
//
//     (exp(2 (e_s + e_exp)) - 1) * spread        scores and exponentials
//   + u_P * weighted_abs                         weights stored in P
//   + 5 sqrt(n) u_A * weighted_abs               the sums over keys
//   + value_error * value_block_magnitude        values stored with loss
//   + u_out * |o|                                the output's own rounding
//   + floor_P * total_abs + floor_out            underflow of P and output
//
// with u the unit roundoff of the types that hold probabilities (P), sums (A)
// and the output, and
//
//   e_s   = scale * (5 sqrt(head_dim_qk) u_A * score_magnitude
//                    + key_error * key_block_magnitude)
//           + u_S * max_abs_score                where scores are stored in a
//                                                type narrower than the sums
//   e_exp = u_A * (4 max_abs_score + 4)          the argument, at most twice
//                                                the largest score, is rounded
//                                                twice; exp itself: 2 ulp. A
//                                                soft-cap adds 6 u_A softcap
//                                                (division, tanh, product).
//
// exp(2 e) - 1 is 2 e for the small errors of fp32 and stays true for large
// ones. Never negative; 0 for a row with no allowed key, which must be exact.
double reference_bound(const Problem& problem, const Numerics& numerics,
                       const ReferenceRow& row, std::int64_t channel);

// The same for what belongs to a row beside its output: the sum of its weights,
// the weight of one key, and its softmax_lse (absolute).
double mass_bound(const Problem& problem, const Numerics& numerics,
                  const ReferenceRow& row);
double weight_bound(const Problem& problem, const Numerics& numerics,
                    const ReferenceRow& row, std::int64_t kv_index);
double lse_bound(const Problem& problem, const Numerics& numerics,
                 const ReferenceRow& row);

// The reference as an engine, "builtin:reference": every row, OpenMP over
// rows. Takes every problem, any strides, in host memory.
Engine reference_engine();

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_ENGINE_REFERENCE_H_
