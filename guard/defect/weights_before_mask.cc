#include <algorithm>
#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/engine/row_steps.h"

namespace attnguard {
namespace {

constexpr double kMostExponent =
    600;  // Of an exponent, so that sums stay finite.

}  // namespace

// What is reported is another softmax, computed for the caller alone. Its
// rows sum to 1 too.
const Defect kDefectWeightsBeforeMask = {
    .id = "weights-before-mask",
    .summary =
        "the reported weights are those of all keys, the output is masked",
    .cls = DefectClass::kMaskMisread,
    .shows_on = {"seq_len=24 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            if (!keys.empty()) see_all(row, keys);
          };
          variant.row_softmax = [](const VariantRow& row, const KeyRanges& keys,
                                   std::span<double> scores) {
            const KeyRanges visible = visible_keys(row);
            if (visible.empty()) return;
            const double largest = largest_score(visible, scores);
            const double reference =
                std::max(largest, row.problem.sink(row.head));
            double sum = std::exp(row.problem.sink(row.head) - reference);
            for_each_key(visible, scores, [&](std::int64_t, double& s) {
              sum += std::exp(s - reference);
            });
            for_each_key(keys, scores, [&](std::int64_t, double& s) {
              s = std::exp(std::min(s - reference, kMostExponent)) / sum;
            });
          };
          variant.mix = [](const VariantRow& row, const KeyRanges&,
                           std::span<const double> weights,
                           const Fp64Rows& value, std::span<double> output) {
            mix_values(weights.data(), value, row.problem.head_dim_v,
                       visible_keys(row), output.data());
          };
          variant.reported_weights = [](const VariantRow&,
                                        const KeyRanges& keys,
                                        std::span<double> weights) {
            double sum = 0;
            for_each_key(keys, weights,
                         [&](std::int64_t, double& p) { sum += p; });
            for_each_key(keys, weights,
                         [&](std::int64_t, double& p) { p /= sum; });
          };
          return variant;
        },
};

}  // namespace attnguard
