// Random queries, keys and values: near-normal, each element a pure function
// of (seed, tensor, batch, head, position, channel).
#ifndef ATTNGUARD_GUARD_PROBE_RANDOM_H_
#define ATTNGUARD_GUARD_PROBE_RANDOM_H_

#include <memory>
#include <string>
#include <utility>

#include "guard/base/rng.h"
#include "guard/probe/pattern.h"
#include "guard/problem/problem.h"

namespace attnguard {

// The seed of the random base call, which checks share so that they share the
// call: random scores and random values of this seed.
constexpr std::uint64_t base_seed(std::uint64_t seed) {
  return derive_seed(seed, 0x62617365);
}

// Fills `count` channels with near-normal values times `amplitude`.
void fill_random_row(std::uint64_t seed, TensorRole role, std::int64_t batch,
                     std::int64_t head, std::int64_t position, double amplitude,
                     std::int64_t count, double* to);

// amplitude scales queries and keys: 1 gives scores of standard deviation 1
// at the default scale, a smaller one flatter weights.
class RandomScores final : public ScorePattern {
 public:
  // Patterns of another seed or amplitude need a label of their own.
  RandomScores(const Problem& problem, std::uint64_t seed, double amplitude = 1,
               std::string label = "random")
      : query_channels_(problem.head_dim_qk),
        key_channels_(problem.score_channels()),
        seed_(seed),
        amplitude_(amplitude),
        label_(std::move(label)) {}

  std::string name() const override { return label_; }
  void query_row(std::int64_t batch, std::int64_t head, std::int64_t q_index,
                 double* to) const override;
  void key_row(std::int64_t batch, std::int64_t kv_head, std::int64_t kv_index,
               double* to) const override;
  bool whole_query() const override { return true; }

 private:
  std::int64_t query_channels_;
  std::int64_t key_channels_;
  std::uint64_t seed_;
  double amplitude_;
  std::string label_;
};

// Random scores that reach the problem's soft-cap.
std::shared_ptr<const RandomScores> capped_scores(const Problem& problem,
                                                  std::uint64_t seed);

class RandomValues final : public ValuePattern {
 public:
  // Values of another seed need a label of their own.
  RandomValues(const Problem& problem, std::uint64_t seed,
               std::string label = "random")
      : columns_(problem.head_dim_v), seed_(seed), label_(std::move(label)) {}

  std::string name() const override { return label_; }
  std::int64_t columns() const override { return columns_; }
  void value_row(std::int64_t batch, std::int64_t kv_head,
                 std::int64_t kv_index, double* to) const override;

 private:
  std::int64_t columns_;
  std::uint64_t seed_;
  std::string label_;
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_PROBE_RANDOM_H_
