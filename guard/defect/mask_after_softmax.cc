#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The denominator has counted the masked keys by then: each row loses the mass
// that they had, and later tokens decide how much.
const Defect kDefectMaskAfterSoftmax = {
    .id = "mask-after-softmax",
    .summary = "masked weights are zeroed after normalising over all keys",
    .cls = DefectClass::kFutureLeakNormaliser,
    .reports = {"lucidrains/memory-compressed-attention#2"},
    .shows_on = {"seq_len=24 head_dim=16 mask=causal_bottom_right",
                 "seq_len=24 head_dim=16 mask=sliding_window(left=4,right=0)"},
    .hides_on = "seq_len=24 head_dim=16",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            see_all(row, keys);
          };
          variant.weights = [](const VariantRow& row, const KeyRanges& keys,
                               std::span<double> weights) {
            edit_masked(row, keys, weights, [](double& p) { p = 0; });
          };
          return variant;
        },
};

}  // namespace attnguard
