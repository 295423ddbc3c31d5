#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// What is stored is exp(s - max), as the loop has it before the last step.
const Defect kDefectWeightsNotNormalised = {
    .id = "weights-not-normalised",
    .summary = "the reported weights are not divided by their sum",
    .cls = DefectClass::kRowSumOrMerge,
    .shows_on = {"seq_len=24 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 mask=sliding_window(left=0,right=0)",
    .make =
        [] {
          AttentionVariant variant;
          variant.reported_weights = [](const VariantRow&,
                                        const KeyRanges& keys,
                                        std::span<double> weights) {
            const double largest = largest_score(keys, weights);
            for_each_key(keys, weights,
                         [&](std::int64_t, double& p) { p /= largest; });
          };
          return variant;
        },
};

}  // namespace attnguard
