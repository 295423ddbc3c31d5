
#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/engine/row_steps.h"

namespace attnguard {

// Right only where the largest score is 0. The higher the scores, the more
// the sink takes.
const Defect kDefectSinkNotRescaled = {
    .id = "sink-not-rescaled",
    .summary =
        "exp(sink) is added to a sum that is relative to the row's maximum",
    .cls = DefectClass::kRowSumOrMerge,
    .shows_on = {"num_heads=2 seq_len=24 head_dim=16 sinks=1,-1 "
                 "mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.row_softmax = [](const VariantRow& row, const KeyRanges& keys,
                                   std::span<double> scores) {
            softmax_row(
                keys, scores.data(),
                row.problem.sink(row.head) + largest_score(keys, scores));
          };
          return variant;
        },
};

}  // namespace attnguard
