#include "guard/probe/needle.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "guard/base/rng.h"

namespace attnguard {

std::shared_ptr<const NeedleScores> NeedleScores::make(const Problem& problem,
                                                       const Numerics& numerics,
                                                       double gap,
                                                       std::uint64_t seed,
                                                       std::string& why_not) {
  std::shared_ptr<NeedleScores> needle(new NeedleScores(problem));
  needle->seed_ = derive_seed(seed, 0x6e6565646c65);
  const std::int64_t len_kv = std::max<std::int64_t>(problem.slots_kv(), 1);
  needle->position_bits_ =
      std::max<int>(std::bit_width(static_cast<std::uint64_t>(len_kv - 1)), 1);
  if (problem.softcap) {
    why_not = "softcap bounds the scores";
    return nullptr;
  }
  gap += problem.largest_sink() +
         problem.largest_alibi_slope() *
             static_cast<double>(std::max(len_kv, problem.max_len_q()));
  if (needle->position_bits_ > problem.score_channels()) {
    why_not = "head_dim_qk has fewer channels than a position has bits";
    return nullptr;
  }
  // Distinct codes differ in at least one channel, which costs 2 * amplitude.
  // A quantised key's code keeps its shape and gets a common factor within
  // 2^-11 (the scale's own rounding); twice the gap covers that.
  if (numerics.key_error > 0) gap *= 2;
  double amplitude = gap / (2 * problem.scale());
  // The key that is found must also dwarf the sink, with all its channels.
  if (!problem.sinks.empty())
    amplitude = std::max(amplitude,
                         gap / (problem.scale() *
                                static_cast<double>(problem.score_channels())));
  needle->query_amplitude_ = std::exp2(std::ceil(std::log2(amplitude)));
  const double largest_score = needle->query_amplitude_ * problem.scale() *
                               static_cast<double>(problem.score_channels());
  const double rounding = 4 * unit_roundoff(numerics.score) * largest_score;
  if (needle->query_amplitude_ > numerics.largest_input(problem.dtype) / 2 ||
      needle->query_amplitude_ < 0x1p-14 || rounding > gap / 8) {
    why_not = "scores do not fit " + std::string(dtype_name(numerics.score)) +
              " scores";
    return nullptr;
  }
  return needle;
}

void NeedleScores::key_row(std::int64_t batch, std::int64_t kv_head,
                           std::int64_t kv_index, double* to) const {
  std::uint64_t slot = derive_seed(seed_, static_cast<std::uint64_t>(batch));
  slot = derive_seed(slot, static_cast<std::uint64_t>(kv_head));
  // The position's bits, flipped by a mask of the slot: distinct within the
  // slot, and another slot's key is no match. Where entries share keys a row
  // sees those of two slots, which must be distinct as well.
  const std::uint64_t flips =
      problem_.shared_prefix > 0
          ? derive_seed(seed_, static_cast<std::uint64_t>(kv_head))
          : slot;
  const std::uint64_t bits = static_cast<std::uint64_t>(kv_index) ^ flips;
  for (std::int64_t c = 0; c < position_bits_; ++c)
    to[c] = (bits >> c & 1) != 0 ? 1.0 : -1.0;
  std::uint64_t hash = 0;
  for (std::int64_t c = position_bits_; c < problem_.score_channels(); ++c) {
    const std::int64_t bit = (c - position_bits_) % 64;
    if (bit == 0)
      hash = derive_seed(slot + static_cast<std::uint64_t>(c) + 1,
                         static_cast<std::uint64_t>(kv_index));
    to[c] = (hash >> bit & 1) != 0 ? 1.0 : -1.0;
  }
}

std::int64_t NeedleScores::target(std::int64_t batch, std::int64_t head,
                                  std::int64_t q_index,
                                  const KeyRanges& allowed) const {
  const std::int64_t count = allowed.count();
  if (count == 0) return -1;
  std::uint64_t bits =
      derive_seed(seed_ ^ 0x726f77, static_cast<std::uint64_t>(batch));
  bits = derive_seed(bits, static_cast<std::uint64_t>(head));
  bits = derive_seed(bits, static_cast<std::uint64_t>(q_index));
  return allowed.nth(uniform_below(bits, count));
}

void NeedleScores::query_row(std::int64_t batch, std::int64_t head,
                             std::int64_t q_index, double* to) const {
  std::fill_n(to, problem_.score_channels(), 0.0);
  if (q_index >= problem_.len_q(batch)) return;
  KeyRanges allowed;
  problem_.mask.allowed(problem_.row(batch, q_index), allowed);
  const std::int64_t key = target(batch, head, q_index, allowed);
  if (key < 0) return;
  key_row(problem_.owner(batch, key), problem_.kv_head_of(head), key, to);
  for (std::int64_t c = 0; c < problem_.score_channels(); ++c)
    to[c] *= query_amplitude_;
}

}  // namespace attnguard
