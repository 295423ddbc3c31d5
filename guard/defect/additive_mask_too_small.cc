#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// An additive mask leaves the order of the scores as it was: a later key whose
// score is high enough comes through.
const Defect kDefectAdditiveMaskTooSmall = {
    .id = "additive-mask-too-small",
    .summary = "masked scores are lowered by 30 instead of being left out",
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
            edit_masked(row, keys, scores, [](double& s) { s -= 30; });
          };
          return variant;
        },
};

}  // namespace attnguard
