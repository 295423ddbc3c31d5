#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// It replaces the score, so nothing of the masked key counts but its value.
// Training can push legal scores below it; then masked keys take over.
const Defect kDefectSentinelMinusTenThousand = {
    .id = "sentinel-minus-ten-thousand",
    .summary = "masked scores are set to -10000 instead of being left out",
    .cls = DefectClass::kFiniteMaskLeak,
    .reports = {"karpathy/minGPT#75"},
    .shows_on = {"seq_len=24 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            see_all(row, keys);
          };
          variant.scores = [](const VariantRow& row, const KeyRanges& keys,
                              std::span<double> scores) {
            edit_masked(row, keys, scores, [](double& s) { s = -10000; });
          };
          return variant;
        },
};

}  // namespace attnguard
