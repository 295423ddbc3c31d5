#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// Far below ordinary scores; exp(-100) is next to nothing. Steep scales pass
// it at once.
const Defect kDefectSentinelMinusHundred = {
    .id = "sentinel-minus-hundred",
    .summary = "masked scores are set to -100 instead of being left out",
    .cls = DefectClass::kFiniteMaskLeak,
    .shows_on =
        {"seq_len=24 head_dim=16 mask=causal_bottom_right",
         "seq_len=24 head_dim=16 mask=causal_bottom_right softmax_scale=50"},
    .hides_on = "seq_len=24 head_dim=16",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            see_all(row, keys);
          };
          variant.scores = [](const VariantRow& row, const KeyRanges& keys,
                              std::span<double> scores) {
            edit_masked(row, keys, scores, [](double& s) { s = -100; });
          };
          return variant;
        },
};

}  // namespace attnguard
