#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// One head_dim serves for both: wrong as soon as they differ, as in multi-head
// latent attention.
const Defect kDefectScaleOfValueDim = {
    .id = "scale-of-value-dim",
    .summary = "the scale is 1 / sqrt(head_dim_v)",
    .cls = DefectClass::kWrongScaleOrBias,
    .shows_on =
        {"seq_len=24 head_dim_qk=24 head_dim_v=16 mask=causal_bottom_right",
         "num_heads=4 num_kv_heads=1 seq_len=24 head_dim_qk=24 head_dim_v=16 "
         "value_in_key=true mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.scale = [](const Problem& problem) {
            return 1 / std::sqrt(static_cast<double>(problem.head_dim_v));
          };
          return variant;
        },
};

}  // namespace attnguard
