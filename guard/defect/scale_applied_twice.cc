#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// Once in the query projection, once in the kernel.
const Defect kDefectScaleAppliedTwice = {
    .id = "scale-applied-twice",
    .summary = "scores are scaled twice",
    .cls = DefectClass::kWrongScaleOrBias,
    .shows_on = {"seq_len=24 head_dim=16 mask=causal_bottom_right"},
    .hides_on =
        "seq_len=24 head_dim=16 mask=causal_bottom_right softmax_scale=1",
    .make =
        [] {
          AttentionVariant variant;
          variant.scale = [](const Problem& problem) {
            return problem.scale() * problem.scale();
          };
          return variant;
        },
};

}  // namespace attnguard
