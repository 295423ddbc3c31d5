
#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/engine/row_steps.h"

namespace attnguard {

// The scale is folded into exp2 and forgotten in the sum that is reported.
const Defect kDefectLseWithoutScale = {
    .id = "lse-without-scale",
    .summary = "softmax_lse is that of scores which are not scaled",
    .cls = DefectClass::kRowSumOrMerge,
    .shows_on = {"seq_len=24 head_dim=16 mask=causal_bottom_right"},
    .hides_on =
        "seq_len=24 head_dim=16 mask=causal_bottom_right softmax_scale=1",
    .make =
        [] {
          AttentionVariant variant;
          variant.scores = [](const VariantRow& row, const KeyRanges& keys,
                              std::span<double> scores) {
            const double scale = row.problem.scale();
            for_each_key(keys, scores,
                         [&](std::int64_t, double& s) { s /= scale; });
          };
          variant.row_softmax = [](const VariantRow& row, const KeyRanges& keys,
                                   std::span<double> scores) {
            const double scale = row.problem.scale();
            for_each_key(keys, scores,
                         [&](std::int64_t, double& s) { s *= scale; });
            softmax_row(keys, scores.data(), row.problem.sink(row.head));
          };
          return variant;
        },
};

}  // namespace attnguard
