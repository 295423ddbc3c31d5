#include "guard/probe/census.h"

#include <algorithm>
#include <cmath>

#include "guard/base/rng.h"

namespace attnguard {
namespace {

constexpr std::uint64_t kKeySeed = 0x63656e6b;
constexpr std::uint64_t kCodeSeed = 0x63656e63;
constexpr std::int64_t kCensusBase = 128;  // Digits are exact in every dtype.

// Twice the roundoff at the smallest normal number.
double smallest_subnormal(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFp64:
      return 0x1p-1074;
    case Dtype::kFp32:
      return 0x1p-149;
    case Dtype::kFp16:
      return 0x1p-24;
    case Dtype::kBf16:
      return 0x1p-133;
  }
  return 0;
}

}  // namespace

CensusScores::CensusScores(const Problem& problem, const Numerics& numerics,
                           std::uint64_t seed)
    : problem_(problem),
      channels_(problem.score_channels()),
      unit_(std::max(unit_roundoff(numerics.score),
                     unit_roundoff(numerics.accumulator))),
      key_error_(numerics.key_error),
      seed_(seed) {}

std::shared_ptr<const CensusScores> CensusScores::make(const Problem& problem,
                                                       const Numerics& numerics,
                                                       std::uint64_t seed,
                                                       std::string& why_not) {
  std::shared_ptr<CensusScores> census(
      new CensusScores(problem, numerics, seed));
  if (!problem.alibi_max_bias) return census;
  if (problem.softcap) {
    why_not = "census: ALiBi behind a soft-cap cannot be taken back";
    return nullptr;
  }
  KeyRanges allowed;
  for (std::int64_t b = 0; b < problem.batch; ++b)
    for (std::int64_t i = 0; i < problem.len_q(b); ++i) {
      const RowPlace place = problem.row(b, i);
      problem.mask.allowed(place, allowed);
      if (allowed.empty() || allowed.last() <= place.bottom_right()) continue;
      why_not = "census: ALiBi on both sides of a query cannot be taken back";
      return nullptr;
    }
  for (std::int64_t rest = problem.slots_kv() - 1; rest > 0;
       rest /= kCensusBase)
    ++census->digits_;
  census->digits_ = std::max<std::int64_t>(census->digits_, 1);
  const double top =
      std::pow(kCensusBase, static_cast<double>(census->digits_ - 1));
  if (census->digits_ > census->channels_ ||
      problem.largest_alibi_slope() / problem.scale() * top >
          numerics.largest_input(problem.dtype) / 2) {
    why_not = "census: ALiBi's range does not fit the query";
    return nullptr;
  }
  return census;
}

double CensusScores::common_score(std::int64_t head,
                                  const RowPlace& place) const {
  return digits_ == 0 ? 0
                      : -problem_.alibi_slope(head) *
                            static_cast<double>(place.bottom_right());
}

double CensusScores::score_error(std::int64_t head) const {
  if (digits_ == 0) return 0;
  const double slope = problem_.alibi_slope(head);
  const double range = slope * static_cast<double>(std::max(
                                   problem_.slots_kv(), problem_.max_len_q()));
  // The query's channels are slope / scale times powers of two.
  const double channel = slope / problem_.scale();
  const double rounded = quantize(problem_.dtype, channel);
  // The largest digit of a key sets the step in which all of them are stored.
  const double digit = static_cast<double>(std::min(
      std::max<std::int64_t>(problem_.slots_kv() - 1, 1), kCensusBase - 1));
  double places = 0;
  for (std::int64_t m = 0; m < digits_; ++m) places = places * kCensusBase + 1;
  return range * (std::abs(rounded - channel) / channel + 4 * unit_) +
         slope * places * digit * key_error_;
}

void CensusScores::query_row(std::int64_t, std::int64_t head, std::int64_t,
                             double* to) const {
  std::fill_n(to, channels_, 0.0);
  double channel = -problem_.alibi_slope(head) / problem_.scale();
  for (std::int64_t m = 0; m < digits_; ++m, channel *= kCensusBase)
    to[m] = channel;
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
  for (std::int64_t m = 0, rest = kv_index; m < digits_;
       ++m, rest /= kCensusBase)
    to[m] = static_cast<double>(rest % kCensusBase);
}

CensusCode::CensusCode(const Problem& problem, std::int64_t columns,
                       std::uint64_t seed)
    : columns_(columns),
      len_kv_(std::max<std::int64_t>(problem.slots_kv(), 1)),
      shared_prefix_(problem.shared_prefix),
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
  const auto add = [&](std::int64_t owner, std::int64_t begin,
                       std::int64_t end) {
    if (begin >= end) return;
    const std::uint64_t flips = slot_flips(owner, kv_head);
    const std::int8_t* from = prefix(begin);
    const std::int8_t* past = prefix(end);
    for (std::int64_t c = 0; c < columns_; ++c) {
      const int sign = (flips >> c & 1) != 0 ? -1 : 1;
      to[c] += sign * (past[c] - from[c]);
    }
  };
  for (const KeyRange& range : allowed.ranges()) {
    const std::int64_t middle =
        std::clamp(shared_prefix_, range.begin, range.end);
    add(0, range.begin, middle);
    add(batch, middle, range.end);
  }
}

CensusCode::Explanation CensusCode::explain(std::int64_t batch,
                                            std::int64_t kv_head,
                                            const KeyRanges& allowed,
                                            const double* mean,
                                            double sink_keys) const {
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
      const double counted = mean[c] * (static_cast<double>(keys) + sink_keys);
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
      if (at->second >= shared_prefix_ &&
          allowed.contains(at->second) == want_allowed)
        return at->second;
    if (shared_prefix_ == 0) return -1;
    const auto [first, last] =
        keys_by_code_.equal_range((bits ^ slot_flips(0, kv_head)) & used);
    for (auto at = first; at != last; ++at)
      if (at->second < shared_prefix_ &&
          allowed.contains(at->second) == want_allowed)
        return at->second;
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
    value_row(leaked < shared_prefix_ ? 0 : batch, kv_head, leaked,
              code.data());
    for (std::size_t c = 0; c < sum.size(); ++c)
      difference[c] = swapped[c] - static_cast<std::int32_t>(code[c]);
    if (const std::int64_t missing = single_key(-1, true); missing >= 0)
      return {true, leaked, missing};
  }
  return {};
}

CensusError census_error(const Numerics& numerics, Dtype output_dtype,
                         std::int64_t count, double total) {
  CensusError error;
  error.per_key = unit_roundoff(numerics.probability) +
                  unit_roundoff(output_dtype) + numerics.value_error;
  // Sums of +-1 weights are exact in a narrow accumulator; in a wide one the
  // weights may be normalised first, and each addition rounds a partial sum
  // of at most 2 * kWalkBound + 2 keys.
  const double unit = unit_roundoff(numerics.accumulator);
  const double partial = 2 * CensusCode::kWalkBound + 2;
  error.fixed = 4 * unit_roundoff(Dtype::kFp32);
  // In a narrow one, values that are not exact have errors that do not cancel
  // as codes do.
  error.fixed += static_cast<double>(count) *
                 (unit <= 0x1p-24 ? partial * unit : numerics.value_error);
  // Beside a large sink weights and outputs may be below the normal numbers.
  error.fixed += total * (smallest_subnormal(output_dtype) +
                          static_cast<double>(count) *
                              smallest_subnormal(numerics.probability));
  return error;
}

}  // namespace attnguard
