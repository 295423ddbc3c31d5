#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The lowest number of fp16, kept when scores moved to fp32. Only scores
// below it show the difference.
const Defect kDefectSentinelFp16Lowest = {
    .id = "sentinel-fp16-lowest",
    .summary = "masked scores are set to -65504 instead of being left out",
    .cls = DefectClass::kFiniteMaskLeak,
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
            edit_masked(row, keys, scores, [](double& s) { s = -65504; });
          };
          return variant;
        },
};

}  // namespace attnguard
