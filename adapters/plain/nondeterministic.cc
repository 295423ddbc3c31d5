#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "adapters/plain/builtin_table.h"
#include "guard/base/rng.h"
#include "guard/engine/attention_variant.h"

namespace attnguard {
namespace {

// output = sum_j p_j v_j in fp32 (fp64 for fp64), over the keys in rising
// order but beginning with the start-th.
void mix_from(std::int64_t start, const KeyRanges& keys, Dtype sum_type,
              std::span<const double> weights, const Fp64Rows& value,
              std::span<double> output) {
  std::fill(output.begin(), output.end(), 0.0);
  const std::int64_t count = keys.count();
  for (std::int64_t n = 0; n < count; ++n) {
    const std::int64_t j = keys.nth((start + n) % count);
    const double weight = weights[static_cast<std::size_t>(j)];
    for (std::size_t c = 0; c < output.size(); ++c)
      output[c] = quantize(sum_type, output[c] + weight * value.row(j)[c]);
  }
}

// What unordered additions from many threads look like: exact sums stay exact,
// the others differ in their last bits. Its capabilities claim that it is
// deterministic.
Engine make_nondeterministic() {
  auto calls = std::make_shared<std::atomic<std::uint64_t>>(0);
  Engine engine;
  engine.run = [calls](const AttentionCall& call) {
    const std::uint64_t seed = ++*calls;
    AttentionVariant variant;
    variant.mix = [seed](const VariantRow& row, const KeyRanges& keys,
                         std::span<const double> weights, const Fp64Rows& value,
                         std::span<double> output) {
      const Dtype sum_type =
          row.problem.dtype == Dtype::kFp64 ? Dtype::kFp64 : Dtype::kFp32;
      const std::uint64_t draw =
          derive_seed(seed, static_cast<std::uint64_t>(row.place.q_index));
      mix_from(uniform_below(draw, keys.count()), keys, sum_type, weights,
               value, output);
    };
    return run_variant(variant, call);
  };
  return engine;
}

}  // namespace

const BuiltinEngine kBuiltinNondeterministic = {
    .name = "nondeterministic",
    .summary =
        "known bad: sums over keys in an order that changes from call "
        "to call, and claims to be deterministic",
    .make = make_nondeterministic,
};

}  // namespace attnguard
