#include "adapters/llama_cpp/live/rounding.h"

#include <cmath>

namespace attnguard::llama_cpp {
namespace {

// Half a step of q8_0, of the largest magnitude in a block, twice: the block's
// largest is that of the query, and the bound's that of the key.
constexpr double kQ8Error = 2 * 0.5 / 127;

// Standard deviations that a sum of roundings is allowed, as in the bounds.
constexpr double kLambda = 5;

}  // namespace

Numerics numerics_of(const Storage& storage, const Problem& problem) {
  Numerics numerics;  // Scores, weights and sums in fp32.
  if (!storage.key)
    numerics.key_error = kQ8Error;
  else if (*storage.key != Dtype::kFp32)
    numerics.key_error = unit_roundoff(*storage.key);
  if (!storage.flash)
    numerics.probability = storage.value.value_or(Dtype::kFp32);
  else if (storage.value == Dtype::kFp16)
    // Scores are summed in fp32 all the same, so that this is no accumulator.
    numerics.value_error =
        kLambda * std::sqrt(static_cast<double>(problem.max_len_kv())) *
        unit_roundoff(Dtype::kFp16);
  return numerics;
}

}  // namespace attnguard::llama_cpp
