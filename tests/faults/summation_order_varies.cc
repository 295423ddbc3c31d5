#include <algorithm>
#include <vector>

#include "guard/base/rng.h"
#include "tests/faults/fault_table.h"
#include "tests/faults/fault_tools.h"

namespace attnguard {
namespace {

struct SummationOrderVariesState {
  bool faulty;
  std::uint64_t calls = 0;
};

Status run_summation_order_varies(const AttentionCall& call,
                                  SummationOrderVariesState& state) {
  const std::uint64_t seed = state.faulty ? ++state.calls : 0;
  AttentionVariant variant;
  variant.mix = [=](const VariantRow& row, const KeyRanges& keys,
                    std::span<const double> weights, const Fp64Rows& value,
                    std::span<double> output) {
    const std::int64_t count = keys.count();
    const std::int64_t begin = uniform_below(
        derive_seed(seed, static_cast<std::uint64_t>(row_number(row))), count);
    std::vector<float> sum(output.size(), 0.0f);
    for (std::int64_t n = 0; n < count; ++n) {
      const std::int64_t j = keys.nth((begin + n) % count);
      const auto weight =
          static_cast<float>(weights[static_cast<std::size_t>(j)]);
      for (std::size_t c = 0; c < sum.size(); ++c)
        sum[c] += weight * static_cast<float>(value.row(j)[c]);
    }
    std::copy(sum.begin(), sum.end(), output.begin());
  };
  return run_variant(variant, call);
}

}  // namespace

const Fault kFaultSummationOrderVaries = {
    .id = "summation-order-varies",
    .summary =
        "sums over keys begin at another key in every call, and the engine "
        "declares itself deterministic",
    .cls = DefectClass::kNondeterminismRace,
    .shows_on = {"batch=2 num_heads=4 num_kv_heads=2 seq_len=40 head_dim=64 "
                 "mask=causal_bottom_right"},
    .seen_by = {"repeatable"},
    .make =
        [](bool faulty) {
          return stateful_engine(SummationOrderVariesState{.faulty = faulty},
                                 run_summation_order_varies);
        },
};

}  // namespace attnguard
