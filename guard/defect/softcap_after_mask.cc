#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// tanh brings minus infinity back to minus one. Small caps leak most, and
// rows still sum to 1.
const Defect kDefectSoftcapAfterMask = {
    .id = "softcap-after-mask",
    .summary = "the soft-cap comes after the mask: masked scores are -softcap",
    .cls = DefectClass::kFiniteMaskLeak,
    .reports = {"onnx/onnx#7867"},
    .shows_on = {"seq_len=24 head_dim=16 softcap=2 mask=causal_bottom_right",
                 "seq_len=24 head_dim=16 softcap=20 mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            if (row.problem.softcap) see_all(row, keys);
          };
          variant.scores = [](const VariantRow& row, const KeyRanges& keys,
                              std::span<double> scores) {
            if (!row.problem.softcap) return;
            edit_masked(row, keys, scores,
                        [&](double& s) { s = -*row.problem.softcap; });
          };
          return variant;
        },
};

}  // namespace attnguard
