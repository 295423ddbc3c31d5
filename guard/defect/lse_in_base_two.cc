#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The kernel works with exp2 and hands out what it has. Merges with natural
// logarithms go wrong.
const Defect kDefectLseInBaseTwo = {
    .id = "lse-in-base-two",
    .summary = "softmax_lse is in base 2",
    .cls = DefectClass::kRowSumOrMerge,
    .shows_on = {"seq_len=24 head_dim=16 mask=causal_bottom_right"},
    .make =
        [] {
          AttentionVariant variant;
          variant.lse = [](const VariantRow&, double& lse) {
            lse /= std::log(2.0);
          };
          return variant;
        },
};

}  // namespace attnguard
