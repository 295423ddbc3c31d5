#include "guard/probe/random.h"

#include <cmath>

namespace attnguard {

void fill_random_row(std::uint64_t seed, TensorRole role, std::int64_t batch,
                     std::int64_t head, std::int64_t position, double amplitude,
                     std::int64_t count, double* to) {
  std::uint64_t row = derive_seed(seed, static_cast<std::uint64_t>(role));
  row = derive_seed(row, static_cast<std::uint64_t>(batch));
  row = derive_seed(row, static_cast<std::uint64_t>(head));
  row = derive_seed(row, static_cast<std::uint64_t>(position));
  // One mix for two elements: the row's seed is mixed already, and SplitMix64
  // itself is this mixer over a counter.
  for (std::int64_t c = 0; c < count; c += 2) {
    const std::uint64_t bits = mix_bits(row + static_cast<std::uint64_t>(c));
    to[c] = amplitude * near_normal(bits);
    if (c + 1 < count) to[c + 1] = amplitude * near_normal(bits >> 32);
  }
}

void RandomScores::query_row(std::int64_t batch, std::int64_t head,
                             std::int64_t q_index, double* to) const {
  fill_random_row(seed_, TensorRole::kQuery, batch, head, q_index, amplitude_,
                  query_channels_, to);
}

void RandomScores::key_row(std::int64_t batch, std::int64_t kv_head,
                           std::int64_t kv_index, double* to) const {
  fill_random_row(seed_, TensorRole::kKey, batch, kv_head, kv_index, amplitude_,
                  key_channels_, to);
}

std::shared_ptr<const RandomScores> capped_scores(const Problem& problem,
                                                  std::uint64_t seed) {
  // Scores of standard deviation softcap / 2 at the default scale.
  const double amplitude = std::sqrt(
      problem.softcap.value_or(2.0) / 2 /
      (problem.scale() * std::sqrt(static_cast<double>(problem.head_dim_qk))));
  return std::make_shared<RandomScores>(problem, mix_bits(seed), amplitude,
                                        "random-capped");
}

void RandomValues::value_row(std::int64_t batch, std::int64_t kv_head,
                             std::int64_t kv_index, double* to) const {
  fill_random_row(seed_, TensorRole::kValue, batch, kv_head, kv_index, 1,
                  columns_, to);
}

}  // namespace attnguard
