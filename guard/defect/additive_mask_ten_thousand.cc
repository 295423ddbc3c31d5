#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The constant of many a reference. Ordinary scores never reach it; large
// ones, as training can bring about, do.
const Defect kDefectAdditiveMaskTenThousand = {
    .id = "additive-mask-ten-thousand",
    .summary = "masked scores are lowered by 10000 instead of being left out",
    .cls = DefectClass::kFiniteMaskLeak,
    .reports = {"karpathy/minGPT#75"},
    .shows_on =
        {"seq_len_q=8 seq_len_kv=1100 head_dim=16 mask=causal_top_left"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            see_all(row, keys);
          };
          variant.scores = [](const VariantRow& row, const KeyRanges& keys,
                              std::span<double> scores) {
            edit_masked(row, keys, scores, [](double& s) { s -= 10000; });
          };
          return variant;
        },
};

}  // namespace attnguard
