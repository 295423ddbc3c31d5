#include "guard/probe/ladder.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "guard/base/text.h"

namespace attnguard {
namespace {

constexpr int kDigitBits = 7;
constexpr std::int64_t kLadderBase = 1 << kDigitBits;

}  // namespace

double dominance_gap(const Numerics& numerics, double amplitude) {
  // The others' weights sum to less than 2 exp(-gap); a quarter of the unit
  // roundoff leaves them below half an ulp even against a value of 1.
  const double unit = unit_roundoff(numerics.accumulator);
  const double others = std::log(8.0 * (amplitude + 1) / unit);
  return std::max(20.0, others);
}

std::shared_ptr<const LadderScores> LadderScores::make(const Problem& problem,
                                                       const Numerics& numerics,
                                                       Direction direction,
                                                       double gap,
                                                       std::string& why_not) {
  std::shared_ptr<LadderScores> ladder(new LadderScores);
  ladder->direction_ = direction;
  ladder->channels_ = problem.score_channels();
  ladder->len_kv_ = std::max<std::int64_t>(problem.slots_kv(), 1);
  if (problem.softcap) {
    why_not = "softcap bounds the scores";
    return nullptr;
  }
  // The lowest step, too, must dwarf the sink; neighbours' ALiBi differs by
  // one slope.
  ladder->first_rank_ = problem.sinks.empty() ? 0 : 1;
  gap += problem.largest_sink() + problem.largest_alibi_slope();
  if (!problem.sinks.empty())
    gap += problem.largest_alibi_slope() *
           static_cast<double>(std::max(ladder->len_kv_, problem.max_len_q()));
  const int bits =
      std::max<int>(static_cast<int>(std::bit_width(static_cast<std::uint64_t>(
                        ladder->len_kv_ - 1 + ladder->first_rank_))),
                    1);
  ladder->digits_ = (bits + kDigitBits - 1) / kDigitBits;
  if (numerics.key_error > 0) {
    why_not = "keys are stored quantised";
    return nullptr;
  }
  if (ladder->digits_ > ladder->channels_) {
    why_not = "head_dim_qk has fewer channels than a position has digits";
    return nullptr;
  }
  // The smallest power of two that makes one step at least `gap` nats.
  const double unit = std::exp2(std::ceil(std::log2(gap / problem.scale())));
  const double largest = numerics.largest_input(problem.dtype);
  const double top = std::pow(static_cast<double>(kLadderBase),
                              static_cast<double>(ladder->digits_ - 1));
  ladder->query_unit_ = unit;
  while (ladder->query_unit_ * top > largest / 2) {
    ladder->query_unit_ /= 2;
    ladder->key_unit_ *= 2;
  }
  // fp16 holds powers of two exactly down to 2^-24, normal down to 2^-14.
  if (ladder->query_unit_ < 0x1p-14) {
    why_not = "softmax_scale is too large for a step that the dtype holds";
    return nullptr;
  }
  const double step = unit * problem.scale();
  const double range =
      step * static_cast<double>(ladder->len_kv_ + ladder->first_rank_);
  // Rounding of a score (product with the scale, then with log2 e) must stay
  // far below one step.
  const double rounding = 4 * unit_roundoff(numerics.score) * range;
  if (ladder->key_unit_ * static_cast<double>(kLadderBase) > largest / 2 ||
      range / problem.scale() > dtype_info(numerics.score).max_finite / 2 ||
      range > dtype_info(numerics.score).max_finite / 2 ||
      rounding > step - gap + gap / 16) {
    why_not = "scores up to " + format_double(std::ceil(range)) +
              " do not fit " + std::string(dtype_name(numerics.score)) +
              " scores";
    return nullptr;
  }
  return ladder;
}

void LadderScores::query_row(std::int64_t, std::int64_t, std::int64_t,
                             double* to) const {
  std::fill_n(to, channels_, 0.0);
  double unit = query_unit_;
  for (std::int64_t m = 0; m < digits_; ++m, unit *= kLadderBase) to[m] = unit;
}

void LadderScores::key_row(std::int64_t, std::int64_t, std::int64_t kv_index,
                           double* to) const {
  std::fill_n(to, channels_, 0.0);
  std::int64_t rank =
      first_rank_ +
      (direction_ == Direction::kUp ? kv_index : len_kv_ - 1 - kv_index);
  for (std::int64_t m = 0; m < digits_; ++m, rank >>= kDigitBits)
    to[m] = static_cast<double>(rank & (kLadderBase - 1)) * key_unit_;
}

}  // namespace attnguard
