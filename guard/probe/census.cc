#include "guard/probe/census.h"

#include <algorithm>
#include <cmath>

#include "guard/base/rng.h"

namespace attnguard {
namespace {

constexpr std::uint64_t kKeySeed = 0x63656e6b;
constexpr std::uint64_t kCodeSeed = 0x63656e63;

}  // namespace

void CensusScores::query_row(std::int64_t, std::int64_t, std::int64_t,
                             double* to) const {
  std::fill_n(to, channels_, 0.0);
}

void CensusScores::key_row(std::int64_t batch, std::int64_t kv_head,
                           std::int64_t kv_index, double* to) const {
  std::uint64_t row =
      derive_seed(seed_ ^ kKeySeed, static_cast<std::uint64_t>(batch));
  row = derive_seed(row, static_cast<std::uint64_t>(kv_head));
  row = derive_seed(row, static_cast<std::uint64_t>(kv_index));
  for (std::int64_t c = 0; c < channels_; ++c) {
    if (c % 64 == 0) row = mix_bits(row);
    to[c] = (row >> (c % 64) & 1) != 0 ? 1.0 : -1.0;
  }
}

CensusCode::CensusCode(const Problem& problem, std::int64_t columns,
                       std::uint64_t seed)
    : columns_(columns),
      len_kv_(problem.max_len_kv()),
      seed_(derive_seed(seed, kCodeSeed)),
      prefix_(static_cast<std::size_t>((len_kv_ + 1) * columns), 0) {
  for (std::int64_t j = 0; j < len_kv_; ++j) {
    const std::uint64_t bits =
        derive_seed(seed_, static_cast<std::uint64_t>(j));
    const std::int8_t* from = prefix(j);
    std::int8_t* to = prefix_.data() + (j + 1) * columns_;
    for (std::int64_t c = 0; c < columns_; ++c) {
      int step = (bits >> c & 1) != 0 ? 1 : -1;
      if (from[c] >= kWalkBound) step = -1;
      if (from[c] <= -kWalkBound) step = 1;
      to[c] = static_cast<std::int8_t>(from[c] + step);
    }
  }
  for (std::int64_t j = 0; j < len_kv_; ++j)
    keys_by_code_.emplace(code_bits(j), j);
}

std::uint64_t CensusCode::slot_flips(std::int64_t batch,
                                     std::int64_t kv_head) const {
  return derive_seed(derive_seed(seed_ + 1, static_cast<std::uint64_t>(batch)),
                     static_cast<std::uint64_t>(kv_head));
}

std::uint64_t CensusCode::code_bits(std::int64_t kv_index) const {
  const std::int8_t* from = prefix(kv_index);
  const std::int8_t* to = prefix(kv_index + 1);
  std::uint64_t bits = 0;
  for (std::int64_t c = 0; c < columns_; ++c)
    bits |= std::uint64_t{to[c] > from[c]} << c;
  return bits;
}

void CensusCode::value_row(std::int64_t batch, std::int64_t kv_head,
                           std::int64_t kv_index, double* to) const {
  const std::uint64_t flips = slot_flips(batch, kv_head);
  const std::int8_t* from = prefix(kv_index);
  const std::int8_t* next = prefix(kv_index + 1);
  for (std::int64_t c = 0; c < columns_; ++c) {
    const int sign = (flips >> c & 1) != 0 ? -1 : 1;
    to[c] = sign * (next[c] - from[c]);
  }
}

void CensusCode::expected_sum(std::int64_t batch, std::int64_t kv_head,
                              const KeyRanges& allowed, double* to) const {
  std::fill_n(to, columns_, 0.0);
  for (const KeyRange& range : allowed.ranges()) {
    const std::int8_t* from = prefix(range.begin);
    const std::int8_t* end = prefix(range.end);
    for (std::int64_t c = 0; c < columns_; ++c) to[c] += end[c] - from[c];
  }
  const std::uint64_t flips = slot_flips(batch, kv_head);
  for (std::int64_t c = 0; c < columns_; ++c)
    to[c] *= 1.0 - 2.0 * static_cast<double>(flips >> c & 1);
}

CensusCode::Explanation CensusCode::explain(std::int64_t batch,
                                            std::int64_t kv_head,
                                            const KeyRanges& allowed,
                                            const double* mean) const {
  std::vector<double> sum(static_cast<std::size_t>(columns_));
  expected_sum(batch, kv_head, allowed, sum.data());
  const std::uint64_t flips = slot_flips(batch, kv_head);
  const std::uint64_t used =
      columns_ == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << columns_) - 1;
  const std::int64_t count = allowed.count();

  // difference[c] = what is counted beyond the declared sum, if the row
  // averaged over `keys` keys; false when it is not near integers.
  std::vector<std::int32_t> difference(sum.size());
  const auto differences = [&](std::int64_t keys) {
    for (std::size_t c = 0; c < sum.size(); ++c) {
      const double counted = mean[c] * static_cast<double>(keys);
      const double rounded = std::nearbyint(counted);
      if (!(std::abs(counted - rounded) < 0.4)) return false;
      difference[c] = static_cast<std::int32_t>(rounded - sum[c]);
    }
    return true;
  };
  // The key whose code is sign * difference, with the wanted visibility.
  const auto single_key = [&](int sign, bool want_allowed) -> std::int64_t {
    std::uint64_t bits = 0;
    for (std::size_t c = 0; c < sum.size(); ++c) {
      if (std::abs(difference[c]) != 1) return -1;
      bits |= std::uint64_t{difference[c] * sign > 0} << c;
    }
    const auto [begin, end] = keys_by_code_.equal_range((bits ^ flips) & used);
    for (auto at = begin; at != end; ++at)
      if (allowed.contains(at->second) == want_allowed) return at->second;
    return -1;
  };

  if (differences(count + 1))
    if (const std::int64_t key = single_key(1, false); key >= 0)
      return {true, key, -1};
  if (count > 1 && differences(count - 1))
    if (const std::int64_t key = single_key(-1, true); key >= 0)
      return {true, -1, key};
  if (!differences(count)) return {};
  // Swapped: difference = code(leaked) - code(missing), each entry -2, 0, 2.
  const std::vector<std::int32_t> swapped = difference;
  std::vector<double> code(sum.size());
  for (std::int64_t leaked = 0; leaked < len_kv_; ++leaked) {
    if (allowed.contains(leaked)) continue;
    value_row(batch, kv_head, leaked, code.data());
    for (std::size_t c = 0; c < sum.size(); ++c)
      difference[c] = swapped[c] - static_cast<std::int32_t>(code[c]);
    if (const std::int64_t missing = single_key(-1, true); missing >= 0)
      return {true, leaked, missing};
  }
  return {};
}

CensusError census_error(const Numerics& numerics, Dtype output_dtype,
                         std::int64_t count) {
  CensusError error;
  error.per_key = unit_roundoff(numerics.probability) +
                  unit_roundoff(output_dtype) + numerics.value_error;
  // Sums of +-1 weights are exact in a narrow accumulator; in a wide one the
  // weights may be normalised first, and each addition rounds a partial sum
  // of at most 2 * kWalkBound + 2 keys.
  const double unit = unit_roundoff(numerics.accumulator);
  const double partial = 2 * CensusCode::kWalkBound + 2;
  error.fixed = 4 * unit_roundoff(Dtype::kFp32);
  if (unit <= 0x1p-24)
    error.fixed += static_cast<double>(count) * partial * unit;
  return error;
}

}  // namespace attnguard
