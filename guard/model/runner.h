// Calls a model the way its checks need it, and believes nothing: exceptions
// become statuses, logits are poisoned before each call, and what was not
// written is an error.
#ifndef ATTNGUARD_GUARD_MODEL_RUNNER_H_
#define ATTNGUARD_GUARD_MODEL_RUNNER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "guard/base/status.h"
#include "guard/model/logits.h"
#include "guard/model/model.h"

namespace attnguard {

// Tokens to append to a sequence; where they begin is the runner's to know.
struct Append {
  std::int64_t sequence = 0;
  std::span<const std::int32_t> tokens;
};

class ModelRunner {
 public:
  // The model outlives the runner.
  explicit ModelRunner(const Model& model);

  // Forgets one sequence, or all.
  Status clear(std::int64_t sequence);
  Status clear_all();

  // One call of the model's: the logits of each append, in their order. A
  // model without a cache forgets its sequences with each call.
  Result<std::vector<Logits>> decode(std::span<const Append> appends);

  // The logits of all tokens, from nothing, as one sequence: in one call,
  // in pieces of the given sizes (the last size repeats), or, for a model
  // without a cache, the last row of each prefix.
  Result<Logits> one_pass(std::span<const std::int32_t> tokens);
  Result<Logits> in_pieces(std::span<const std::int32_t> tokens,
                           std::span<const std::int64_t> sizes);
  Result<Logits> by_prefixes(std::span<const std::int32_t> tokens);

  std::int64_t calls() const { return calls_; }
  double seconds() const { return seconds_; }  // Inside of the model.

 private:
  Status call(std::span<const ModelStep> steps);

  const Model& model_;
  std::vector<std::int64_t> lengths_;  // Of each sequence, in the cache.
  std::int64_t calls_ = 0;
  double seconds_ = 0;
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_MODEL_RUNNER_H_
