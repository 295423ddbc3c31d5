#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// 1 / sqrt(num_heads * head_dim_qk): the width of the model in place of the
// head's.
const Defect kDefectScaleOfModelWidth = {
    .id = "scale-of-model-width",
    .summary = "the scale is that of all heads together",
    .cls = DefectClass::kWrongScaleOrBias,
    .reports = {"aladdinpersson/Machine-Learning-Collection#65"},
    .shows_on = {"num_heads=4 seq_len=24 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.scale = [](const Problem& problem) {
            return problem.scale() /
                   std::sqrt(static_cast<double>(problem.num_heads));
          };
          return variant;
        },
};

}  // namespace attnguard
