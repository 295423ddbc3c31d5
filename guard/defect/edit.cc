#include "guard/defect/edit.h"

#include <algorithm>
#include <cmath>

namespace attnguard {
namespace {

KeyRanges interval(std::int64_t begin, std::int64_t end) {
  KeyRanges keys;
  keys.append(begin, end);
  return keys;
}

}  // namespace

void see(const VariantRow& row, std::int64_t begin, std::int64_t end,
         KeyRanges& keys) {
  const KeyRanges old = keys;
  unite(old,
        interval(std::max<std::int64_t>(begin, 0),
                 std::min(end, row.place.seq_len_kv)),
        keys);
}

void see_all(const VariantRow& row, KeyRanges& keys) {
  keys = interval(0, row.place.seq_len_kv);
}

void see_only(std::int64_t begin, std::int64_t end, KeyRanges& keys) {
  const KeyRanges old = keys;
  intersect(old, interval(begin, end), keys);
}

void drop(std::int64_t begin, std::int64_t end, KeyRanges& keys) {
  if (begin >= end || keys.empty()) return;
  KeyRanges others = interval(0, begin);
  others.append(end, keys.last() + 1);
  const KeyRanges old = keys;
  intersect(old, others, keys);
}

KeyRanges visible_keys(const VariantRow& row) {
  KeyRanges visible;
  row.problem.mask.allowed(row.place, visible);
  return visible;
}

double largest_score(const KeyRanges& keys, std::span<const double> scores) {
  double largest = -HUGE_VAL;
  for (const KeyRange& range : keys.ranges())
    for (std::int64_t j = range.begin; j < range.end; ++j)
      largest = std::max(largest, scores[static_cast<std::size_t>(j)]);
  return largest;
}

double log_sum_exp(const KeyRanges& keys, std::span<const double> scores) {
  const double largest = largest_score(keys, scores);
  double sum = 0;
  for (const KeyRange& range : keys.ranges())
    for (std::int64_t j = range.begin; j < range.end; ++j)
      sum += std::exp(scores[static_cast<std::size_t>(j)] - largest);
  return largest + std::log(sum);
}

KeyRanges keys_in_tile(const KeyRanges& keys, std::int64_t kv_index,
                       std::int64_t tile) {
  const std::int64_t begin = round_down(kv_index, tile);
  KeyRanges part = keys;
  see_only(begin, begin + tile, part);
  return part;
}

const MaskTerm* find_term(const Problem& problem, std::string_view kind) {
  for (const MaskTerm& term : problem.mask.terms())
    if (term.kind->name == kind) return &term;
  return nullptr;
}

void round_to_step(double step, std::span<double> values) {
  if (!(step > 0)) return;
  for (double& x : values) x = std::nearbyint(x / step) * step;
}

}  // namespace attnguard
