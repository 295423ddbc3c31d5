#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// A 0/1 mask meets code that is written for an additive one: zero means
// "allowed" there.
const Defect kDefectMaskMultipliedIntoScores = {
    .id = "mask-multiplied-into-scores",
    .summary = "masked scores are multiplied by 0 and take part as zeros",
    .cls = DefectClass::kFiniteMaskLeak,
    .reports = {"google/gemma_pytorch#73", "huggingface/transformers#31673"},
    .shows_on = {"seq_len=24 head_dim=16 mask=causal_bottom_right",
                 "seq_len=24 head_dim=16 mask=sliding_window(left=4,right=0)"},
    .hides_on = "seq_len=24 head_dim=16",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            see_all(row, keys);
          };
          variant.scores = [](const VariantRow& row, const KeyRanges& keys,
                              std::span<double> scores) {
            edit_masked(row, keys, scores, [](double& s) { s = 0; });
          };
          return variant;
        },
};

}  // namespace attnguard
