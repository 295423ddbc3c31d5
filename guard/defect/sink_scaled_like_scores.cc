#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The sum is seeded before the scale is folded in, and the sink is scaled
// with the scores that follow. It is a finished logit.
const Defect kDefectSinkScaledLikeScores = {
    .id = "sink-scaled-like-scores",
    .summary = "the sink is multiplied by the softmax scale",
    .cls = DefectClass::kRowSumOrMerge,
    .reports = {"ROCm/rocm-libraries#12227"},
    .shows_on = {"num_heads=2 seq_len=24 head_dim=16 sinks=1,-1 "
                 "mask=causal_bottom_right"},
    .hides_on =
        "num_heads=2 seq_len=24 head_dim=16 sinks=1,-1 "
        "mask=causal_bottom_right softmax_scale=1",
    .make =
        [] {
          AttentionVariant variant;
          variant.sink = [](const VariantRow& row) {
            return row.problem.sink(row.head) * row.problem.scale();
          };
          return variant;
        },
};

}  // namespace attnguard
