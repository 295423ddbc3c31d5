#include "guard/probe/token_set.h"

#include <algorithm>

#include "guard/probe/random.h"

namespace attnguard {
namespace {

// Largest |x| of near_normal, squared: the worst product of two elements.
constexpr double kWorstProduct = 2.45 * 2.45;

class PerturbedScores final : public ScorePattern {
 public:
  PerturbedScores(TokenSetPtr set, Perturbation how)
      : set_(std::move(set)), how_(std::move(how)) {}

  std::string name() const override { return how_.label; }
  bool whole_query() const override { return true; }

  void query_row(std::int64_t batch, std::int64_t head, std::int64_t q_index,
                 double* to) const override {
    const Problem& problem = set_->problem();
    const bool fresh = q_index < problem.len_q(batch) &&
                       set_->query_perturbed(batch, head, q_index);
    fill(fresh, TensorRole::kQuery, batch, head, q_index, problem.head_dim_qk,
         to);
  }
  void key_row(std::int64_t batch, std::int64_t kv_head, std::int64_t kv_index,
               double* to) const override {
    const Problem& problem = set_->problem();
    const bool fresh = kv_index < problem.len_kv(batch) &&
                       set_->key_perturbed(batch, kv_head, kv_index);
    fill(fresh, TensorRole::kKey, batch, kv_head, kv_index,
         problem.score_channels(), to);
  }

 private:
  void fill(bool fresh, TensorRole role, std::int64_t batch, std::int64_t head,
            std::int64_t position, std::int64_t channels, double* to) const {
    fill_random_row(fresh ? how_.fresh_seed : how_.base_seed, role, batch, head,
                    position, fresh ? how_.score_amplitude : 1, channels, to);
  }

  TokenSetPtr set_;
  Perturbation how_;
};

class PerturbedValues final : public ValuePattern {
 public:
  PerturbedValues(TokenSetPtr set, Perturbation how)
      : set_(std::move(set)), how_(std::move(how)) {}

  std::string name() const override { return how_.label; }
  std::int64_t columns() const override { return set_->problem().head_dim_v; }
  void value_row(std::int64_t batch, std::int64_t kv_head,
                 std::int64_t kv_index, double* to) const override {
    const bool fresh = kv_index < set_->problem().len_kv(batch) &&
                       set_->key_perturbed(batch, kv_head, kv_index);
    fill_random_row(fresh ? how_.fresh_seed : how_.base_seed,
                    TensorRole::kValue, batch, kv_head, kv_index,
                    fresh ? how_.value_amplitude : 1, columns(), to);
  }

 private:
  TokenSetPtr set_;
  Perturbation how_;
};

}  // namespace

bool TokenSet::sees_perturbed_key(std::int64_t batch, std::int64_t kv_head,
                                  std::int64_t q_index) const {
  KeyRanges allowed;
  problem_.mask.allowed(problem_.row(batch, q_index), allowed);
  for (const KeyRange& range : allowed.ranges())
    for (std::int64_t j = range.begin; j < range.end; ++j)
      if (key_perturbed(problem_.owner(batch, j), kv_head, j)) return true;
  return false;
}

ScorePatternPtr perturbed_scores(TokenSetPtr set, Perturbation how) {
  return std::make_shared<PerturbedScores>(std::move(set), std::move(how));
}

ValuePatternPtr perturbed_values(TokenSetPtr set, Perturbation how) {
  return std::make_shared<PerturbedValues>(std::move(set), std::move(how));
}

double extreme_amplitude(const Problem& problem, const Numerics& numerics) {
  const double limit =
      std::min(dtype_info(numerics.score).max_finite / 4, 1e30);
  const double largest_input = numerics.largest_input(problem.dtype) / 4;
  double amplitude = 64;
  const double worst = kWorstProduct *
                       static_cast<double>(problem.head_dim_qk) *
                       std::max(problem.scale(), 1.0);
  while (amplitude > 1 && (amplitude * amplitude * worst > limit ||
                           amplitude * 2.45 > largest_input))
    amplitude /= 2;
  return amplitude;
}

}  // namespace attnguard
