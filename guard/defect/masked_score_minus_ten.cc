#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// A finite stand-in for minus infinity is only as good as the distance to the
// scores it competes with.
const Defect kDefectMaskedScoreMinusTen = {
    .id = "masked-score-minus-ten",
    .summary = "masked scores are set to -10 instead of being left out",
    .cls = DefectClass::kFiniteMaskLeak,
    .reports = {"microsoft/onnxruntime#14363", "karpathy/minGPT#75"},
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
            edit_masked(row, keys, scores, [](double& s) { s = -10; });
          };
          return variant;
        },
};

}  // namespace attnguard
