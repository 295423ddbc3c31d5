// Edits that defects are made of.
#ifndef ATTNGUARD_GUARD_DEFECT_EDIT_H_
#define ATTNGUARD_GUARD_DEFECT_EDIT_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "guard/engine/attention_variant.h"

namespace attnguard {

// Rounds to multiples of a tile.
constexpr std::int64_t round_down(std::int64_t position, std::int64_t tile) {
  return position / tile * tile;
}
constexpr std::int64_t round_up(std::int64_t position, std::int64_t tile) {
  return (position + tile - 1) / tile * tile;
}

// Intervals [begin, end) of kv_index; parts outside [0, seq_len_kv) of the row
// are ignored.
void see(const VariantRow& row, std::int64_t begin, std::int64_t end,
         KeyRanges& keys);
void see_all(const VariantRow& row, KeyRanges& keys);
void see_only(std::int64_t begin, std::int64_t end, KeyRanges& keys);
void drop(std::int64_t begin, std::int64_t end, KeyRanges& keys);

// What the mask allows, whatever the variant made of it.
KeyRanges visible_keys(const VariantRow& row);

// Sets the elements, scores or weights, of the keys in `keys` that the mask
// does not allow.
template <typename Edit>
void edit_masked(const VariantRow& row, const KeyRanges& keys,
                 std::span<double> values, Edit edit) {
  const KeyRanges visible = visible_keys(row);
  for (const KeyRange& range : keys.ranges())
    for (std::int64_t j = range.begin; j < range.end; ++j)
      if (!visible.contains(j)) edit(values[static_cast<std::size_t>(j)]);
}

// Visits kv_index and element of every key.
template <typename Visit>
void for_each_key(const KeyRanges& keys, std::span<double> values,
                  Visit visit) {
  for (const KeyRange& range : keys.ranges())
    for (std::int64_t j = range.begin; j < range.end; ++j)
      visit(j, values[static_cast<std::size_t>(j)]);
}

// -HUGE_VAL when there is no key.
double largest_score(const KeyRanges& keys, std::span<const double> scores);

// The score of a part of the keys as one: log sum_j exp(s_j).
double log_sum_exp(const KeyRanges& keys, std::span<const double> scores);

// The keys in the same tile as kv_index.
KeyRanges keys_in_tile(const KeyRanges& keys, std::int64_t kv_index,
                       std::int64_t tile);

// Calls visit(part) for the keys of each tile that has any, in rising order.
template <typename Visit>
void for_each_tile(const KeyRanges& keys, std::int64_t tile, Visit visit) {
  for (KeyRanges rest = keys; !rest.empty();) {
    const KeyRanges part = keys_in_tile(rest, rest.first(), tile);
    visit(part);
    drop(part.first(), part.last() + 1, rest);
  }
}

// The mask's term of this kind, or nullptr.
const MaskTerm* find_term(const Problem& problem, std::string_view kind);

// What a variant that rounds its weights to a small type says of itself.
template <Dtype kWeights>
Numerics numerics_of_weights_in(const Problem& problem) {
  Numerics numerics = default_numerics(problem);
  numerics.probability = kWeights;
  return numerics;
}

// The variant itself.
template <Dtype kWeights>
AttentionVariant variant_with_weights_in() {
  AttentionVariant variant;
  variant.weights = [](const VariantRow&, const KeyRanges& keys,
                       std::span<double> weights) {
    for_each_key(keys, weights,
                 [](std::int64_t, double& p) { p = quantize(kWeights, p); });
  };
  return variant;
}

// Rounds to multiples of `step`, as integers with a common scale do. 0: not at
// all.
void round_to_step(double step, std::span<double> values);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_DEFECT_EDIT_H_
