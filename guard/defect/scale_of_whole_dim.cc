#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// A factor that flattens the weights and changes nothing else: every invariant
// holds.
const Defect kDefectScaleOfWholeDim = {
    .id = "scale-of-whole-dim",
    .summary = "scores are divided by head_dim_qk, not by its square root",
    .cls = DefectClass::kWrongScaleOrBias,
    .reports = {"duoan/TorchCode#17"},
    .shows_on = {"seq_len=24 head_dim=16 mask=causal_bottom_right"},
    .hides_on =
        "seq_len=24 head_dim_qk=1 head_dim_v=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.scale = [](const Problem& problem) {
            return 1.0 / static_cast<double>(problem.head_dim_qk);
          };
          return variant;
        },
};

}  // namespace attnguard
