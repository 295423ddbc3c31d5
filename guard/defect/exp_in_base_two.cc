#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// exp2 is the fast instruction; the factor log2(e) that belongs to it is
// missing.
const Defect kDefectExpInBaseTwo = {
    .id = "exp-in-base-two",
    .summary = "weights are powers of 2, scores are not brought to base 2",
    .cls = DefectClass::kWrongScaleOrBias,
    .shows_on = {"seq_len=24 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 mask=sliding_window(left=0,right=0)",
    .make =
        [] {
          AttentionVariant variant;
          variant.scale = [](const Problem& problem) {
            return problem.scale() * std::log(2.0);
          };
          return variant;
        },
};

}  // namespace attnguard
