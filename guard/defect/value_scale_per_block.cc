#include <algorithm>
#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"

namespace attnguard {
namespace {

constexpr double kValueSteps = 128;

void store_block(std::span<double> rows, std::int64_t channels,
                 std::int64_t begin, std::int64_t end, std::int64_t channel) {
  const auto at = [&](std::int64_t j) -> double& {
    return rows[static_cast<std::size_t>(j * channels + channel)];
  };
  double largest = 0;
  for (std::int64_t j = begin; j < end; ++j)
    largest = std::max(largest, std::abs(at(j)));
  if (largest == 0) return;
  const double step = std::exp2(std::ceil(std::log2(largest))) / kValueSteps;
  for (std::int64_t j = begin; j < end; ++j)
    at(j) = std::nearbyint(at(j) / step) * step;
}

// The largest of a position's channels may be smaller than a channel's.
Numerics coarse_values(const Problem& problem) {
  Numerics numerics = default_numerics(problem);
  numerics.value_error = 8 / kValueSteps;
  return numerics;
}

}  // namespace

// Block-scaled formats put 32 positions of V under one power of two, because
// the product runs over positions. Its exponent is chosen before anything is
// masked: a later value alters the stored copy of an earlier one.
const Defect kDefectValueScalePerBlock = {
    .id = "value-scale-per-block",
    .summary = "values of 32 positions share one scale in each channel",
    .cls = DefectClass::kFutureLeakGlobalStat,
    .reports = {"NVIDIA/TransformerEngine#3248"},
    .shows_on = {"seq_len=40 head_dim=16 mask=causal_bottom_right"},
    .make =
        [] {
          AttentionVariant variant;
          variant.stored = [](const AttentionCall& call, TensorRole role,
                              const KvSlot&, std::span<double> rows) {
            if (role != TensorRole::kValue) return;
            const std::int64_t channels = call.problem->head_dim_v;
            const auto count =
                static_cast<std::int64_t>(rows.size()) / channels;
            for (std::int64_t begin = 0; begin < count; begin += kScaleBlock)
              for (std::int64_t c = 0; c < channels; ++c)
                store_block(rows, channels, begin,
                            std::min(begin + kScaleBlock, count), c);
          };
          return variant;
        },
    .numerics = coarse_values,
};

}  // namespace attnguard
