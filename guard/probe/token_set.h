// Fresh values in a set of tokens (their keys, values and queries), all else
// as in the random base call: what every perturbation is made of.
#ifndef ATTNGUARD_GUARD_PROBE_TOKEN_SET_H_
#define ATTNGUARD_GUARD_PROBE_TOKEN_SET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "guard/engine/engine.h"
#include "guard/probe/pattern.h"
#include "guard/problem/problem.h"

namespace attnguard {

class TokenSet {
 public:
  // `problem` must outlive it.
  explicit TokenSet(const Problem& problem) : problem_(problem) {}
  virtual ~TokenSet() = default;

  const Problem& problem() const { return problem_; }

  // Of the entry that owns the token; kv_index is below its length.
  virtual bool key_perturbed(std::int64_t batch, std::int64_t kv_head,
                             std::int64_t kv_index) const = 0;
  virtual bool query_perturbed(std::int64_t batch, std::int64_t head,
                               std::int64_t q_index) const = 0;

  // The row may see a perturbed key.
  virtual bool sees_perturbed_key(std::int64_t batch, std::int64_t kv_head,
                                  std::int64_t q_index) const;

 private:
  const Problem& problem_;
};

using TokenSetPtr = std::shared_ptr<const TokenSet>;

// How tokens of the set are filled.
struct Perturbation {
  std::string label;  // Names the pattern: "perturb-2-extreme".
  std::uint64_t base_seed = 0;
  std::uint64_t fresh_seed = 0;
  double score_amplitude = 1;  // of fresh queries and keys
  double value_amplitude = 1;  // of fresh values
};

ScorePatternPtr perturbed_scores(TokenSetPtr set, Perturbation how);
ValuePatternPtr perturbed_values(TokenSetPtr set, Perturbation how);

// The largest power of two by which queries and keys may grow so that scores
// stay finite in the engine's score type, at most 64.
double extreme_amplitude(const Problem& problem, const Numerics& numerics);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_PROBE_TOKEN_SET_H_
