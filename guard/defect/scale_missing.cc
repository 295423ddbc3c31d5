#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// softmax_scale is left to the caller, who leaves it to the kernel.
const Defect kDefectScaleMissing = {
    .id = "scale-missing",
    .summary = "scores are not scaled",
    .cls = DefectClass::kWrongScaleOrBias,
    .shows_on = {"seq_len=24 head_dim=16 mask=causal_bottom_right"},
    .hides_on =
        "seq_len=24 head_dim=16 mask=causal_bottom_right softmax_scale=1",
    .make =
        [] {
          AttentionVariant variant;
          variant.scale = [](const Problem&) { return 1.0; };
          return variant;
        },
};

}  // namespace attnguard
