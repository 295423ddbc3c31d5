#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The output does not change when a constant is taken off all scores;
// softmax_lse does. Rows beside a sink are right.
const Defect kDefectLseWithoutMax = {
    .id = "lse-without-max",
    .summary = "softmax_lse is the logarithm of the sum, without the maximum",
    .cls = DefectClass::kRowSumOrMerge,
    .shows_on = {"seq_len=24 head_dim=16 mask=causal_bottom_right"},
    .hides_on =
        "num_heads=2 seq_len=24 head_dim=16 sinks=1,-1 "
        "mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.scores = [](const VariantRow& row, const KeyRanges& keys,
                              std::span<double> scores) {
            if (!row.problem.sinks.empty()) return;
            const double largest = largest_score(keys, scores);
            for_each_key(keys, scores,
                         [&](std::int64_t, double& s) { s -= largest; });
          };
          return variant;
        },
};

}  // namespace attnguard
