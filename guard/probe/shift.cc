#include "guard/probe/shift.h"

#include <cmath>

#include "guard/base/text.h"
#include "guard/probe/random.h"

namespace attnguard {

std::shared_ptr<const ShiftedScores> ShiftedScores::make(
    const Problem& problem, const Numerics& numerics, double shift,
    std::uint64_t seed, std::string& why_not) {
  std::shared_ptr<ShiftedScores> scores(new ShiftedScores);
  const std::string text = format_double(shift);
  scores->name_ = "shift" + std::string(shift > 0 ? "+" : "") + text;
  scores->channels_ = problem.score_channels();
  scores->seed_ = seed;
  if (problem.softcap) {
    why_not = "a soft-cap bends the shift";
    return nullptr;
  }
  if (scores->channels_ < 2) {
    why_not = "there is no channel to spare for the shift";
    return nullptr;
  }
  const double product = std::abs(shift) / problem.scale();
  const double largest = numerics.largest_input(problem.dtype) / 4;
  // Both factors near the root; the key's is a power of two and so exact.
  scores->key_ = std::exp2(std::round(std::log2(std::sqrt(product))));
  scores->query_ = std::copysign(product / scores->key_, shift);
  const double most = dtype_info(numerics.score).max_finite / 4;
  if (scores->key_ > largest || std::abs(scores->query_) > largest ||
      product > most || std::abs(shift) > most) {
    why_not = text + " does not fit " +
              std::string(dtype_name(numerics.score)) + " scores";
    return nullptr;
  }
  // Beyond this rounding of the scores alone scrambles the weights.
  if (unit_roundoff(numerics.score) * std::abs(shift) > 0.1 ||
      numerics.key_error * std::abs(shift) > 0.1) {
    why_not = text + " leaves too little precision in the scores";
    return nullptr;
  }
  return scores;
}

void ShiftedScores::query_row(std::int64_t batch, std::int64_t head,
                              std::int64_t q_index, double* to) const {
  fill_random_row(seed_, TensorRole::kQuery, batch, head, q_index, 1,
                  channels_ - 1, to);
  to[channels_ - 1] = query_;
}

void ShiftedScores::key_row(std::int64_t batch, std::int64_t kv_head,
                            std::int64_t kv_index, double* to) const {
  fill_random_row(seed_, TensorRole::kKey, batch, kv_head, kv_index, 1,
                  channels_ - 1, to);
  to[channels_ - 1] = key_;
}

}  // namespace attnguard
