#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The layer normalises and so does the kernel that it calls. Rows sum to 1.
const Defect kDefectDoubleSoftmax = {
    .id = "double-softmax",
    .summary = "softmax is taken twice: weights are nearly equal",
    .cls = DefectClass::kRowSumOrMerge,
    .shows_on = {"seq_len=24 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 mask=sliding_window(left=0,right=0)",
    .make =
        [] {
          AttentionVariant variant;
          variant.weights = [](const VariantRow&, const KeyRanges& keys,
                               std::span<double> weights) {
            softmax_row(keys, weights.data());
          };
          return variant;
        },
};

}  // namespace attnguard
