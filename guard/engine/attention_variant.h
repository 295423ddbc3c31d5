// The fp64 reference with replaceable steps. With no hook set it is the
// reference; a known defect is the reference with one hook set:
//
//   AttentionVariant variant;
//   variant.scale = [](const Problem&) { return 1.0; };  // scale forgotten
//   Engine engine = variant_engine("builtin:wrong_scale", "...", variant);
//
// For each (batch, head):
//
//   k, v      = rows of the entry's KV head      `key_slot`, `value_slot`;
//                                                edited by `stored`
//   q_i       = row i of the head's queries      `query_head`; edited by
//                                                `query`
//   keys[i]   = mask(where row i stands)         edited by `place`, `allowed`
//   s[i, j]   = scale * q_i . k_j                `scale`
//   s[i, j]   = soft-capped, ALiBi added         or `bend`; edited by `scores`
//   p[i, :]   = softmax over keys[i] and sink    `sink`; or `row_softmax` on
//                                                the row, `softmax` on the
//                                                matrices; edited by `weights`
//   o[i, :]   = sum_j p[i, j] v_j                or `mix`; edited by `output`
//   output[i] = o[i]                             unless `keeps` says no
//   lse[i]    = log sum_j exp(s[i, j])           edited by `lse`
//   weights   = p                                edited by `reported_weights`
//
// Rows without keys follow Problem::empty_row. A mask that is given as a
// tensor is read from it.
//
// Hooks are called from several threads at once and must not throw.
#ifndef ATTNGUARD_GUARD_ENGINE_ATTENTION_VARIANT_H_
#define ATTNGUARD_GUARD_ENGINE_ATTENTION_VARIANT_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "guard/engine/engine.h"
#include "guard/engine/row_steps.h"
#include "guard/problem/key_ranges.h"

namespace attnguard {

// The row that a hook is asked about.
struct VariantRow {
  const Problem& problem;
  std::int64_t head = 0;  // of the query
  RowPlace place;         // batch entry, q_index and the entry's own lengths
};

// Whose keys or values are read.
struct KvSlot {
  std::int64_t batch = 0;
  std::int64_t kv_head = 0;

  friend bool operator==(const KvSlot&, const KvSlot&) = default;
};

// Scores, later weights, of one (batch, head): seq_len_q rows of seq_len_kv.
// Only the elements at keys[q_index] have a meaning.
struct VariantScores {
  std::int64_t seq_len_q = 0;
  std::int64_t seq_len_kv = 0;
  std::vector<double> values;   // [seq_len_q, seq_len_kv]
  std::vector<KeyRanges> keys;  // [seq_len_q]

  double* row(std::int64_t q_index) {
    return values.data() + q_index * seq_len_kv;
  }
};

// Every hook may be empty: the step is then the correct one.
struct AttentionVariant {
  // Edits where the row stands before the mask is asked. It may claim more
  // keys than the entry has, up to max_len_kv: the padding is then read.
  std::function<void(const VariantRow&, RowPlace& place)> place;

  // Edits the set of keys, which holds what the mask allows.
  std::function<void(const VariantRow&, KeyRanges& keys)> allowed;

  // Replaces the head whose queries are read.
  std::function<std::int64_t(const Problem&, std::int64_t head)> query_head;

  // Replaces {batch, head / group_size}, for keys and, where there is no
  // `value_slot`, for values.
  std::function<KvSlot(const Problem&, std::int64_t batch, std::int64_t head)>
      key_slot;
  std::function<KvSlot(const Problem&, std::int64_t batch, std::int64_t head)>
      value_slot;

  // Replaces where token `position` of a slot is read: the offset of its row
  // in elements from the start of the key or value tensor.
  std::function<std::int64_t(const AttentionCall&, TensorRole, const KvSlot&,
                             std::int64_t position)>
      row_offset;

  // Edits the keys or the values of a slot, as storing them in a smaller type
  // does: [positions, channels].
  std::function<void(const AttentionCall&, TensorRole, const KvSlot&,
                     std::span<double> rows)>
      stored;

  // Replaces softmax_scale.
  std::function<double(const Problem&)> scale;

  // Edits the row's query, head_dim_qk channels.
  std::function<void(const VariantRow&, std::span<double> query)> query;

  // Replaces bend_scores: soft-cap and ALiBi on the scaled scores of a row.
  std::function<void(const VariantRow&, const KeyRanges& keys,
                     std::span<double> scores)>
      bend;

  // Edits the finished scores of a row; index: kv_index.
  std::function<void(const VariantRow&, const KeyRanges& keys,
                     std::span<double> scores)>
      scores;

  // Replaces the head's sink logit; -inf: none.
  std::function<double(const VariantRow&)> sink;

  // Replaces the softmax of a row: scores become weights, in place.
  std::function<void(const VariantRow&, const KeyRanges& keys,
                     std::span<double> scores)>
      row_softmax;

  // Replaces the softmax of a head: scores become weights, in place. One
  // matrix for each batch entry.
  std::function<void(const Problem&, std::span<VariantScores>)> softmax;

  // Edits the weights of a row; index: kv_index.
  std::function<void(const VariantRow&, const KeyRanges& keys,
                     std::span<double> weights)>
      weights;

  // Replaces the sum over keys: fills `output`, head_dim_v channels, from the
  // row's weights and the values of its KV head. The place for faults of value
  // addressing and of summation.
  std::function<void(const VariantRow&, const KeyRanges& keys,
                     std::span<const double> weights, const Fp64Rows& value,
                     std::span<double> output)>
      mix;

  // Edits the row's result, head_dim_v channels.
  std::function<void(const VariantRow&, std::span<double> output)> output;

  // False: the row is computed and never written.
  std::function<bool(const VariantRow&)> keeps;

  // Edit what is reported beside the output, where it is asked for.
  std::function<void(const VariantRow&, double& lse)> lse;
  std::function<void(const VariantRow&, const KeyRanges& keys,
                     std::span<double> weights)>
      reported_weights;

  // Replaces append_tokens.
  AppendCallback append;
};

// Writes the new rows of every entry to the last tokens of its cache.
Status append_tokens(const CacheAppend& append);

// Takes every problem and gives LSE and weights, in host memory. OpenMP over
// rows; the result does not depend on the number of threads. Memory beside the
// tensors: one (batch, head) of keys and values in fp64 and, only with the
// `softmax` hook, the score matrices of one head; a row of scores per thread
// otherwise.
Status run_variant(const AttentionVariant& variant, const AttentionCall& call);

// run_variant as an engine that computes in fp64.
Engine variant_engine(std::string name, std::string description,
                      AttentionVariant variant);

// What it rounds: only the output.
Numerics fp64_numerics(const Problem& problem);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_ENGINE_ATTENTION_VARIANT_H_
