#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// All masked scores are the same finite number, and a softmax over equal
// scores is flat. The row sums to 1.
const Defect kDefectEmptyRowMean = {
    .id = "empty-row-mean",
    .summary = "a row without allowed keys is the mean of all values",
    .cls = DefectClass::kFiniteMaskLeak,
    .reports = {"microsoft/onnxruntime#28904"},
    .shows_on =
        {"seq_len_q=9 seq_len_kv=4 head_dim=16 mask=causal_bottom_right",
         "batch=2 seq_len=24 head_dim=16 "
         "mask=left_padding(pad=3:0)+causal_bottom_right"},
    .hides_on =
        "seq_len_q=9 seq_len_kv=4 head_dim=16 mask=causal_bottom_right "
        "empty_row=mean",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            if (keys.empty()) see_all(row, keys);
          };
          variant.scores = [](const VariantRow& row, const KeyRanges& keys,
                              std::span<double> scores) {
            if (!visible_keys(row).empty()) return;
            for_each_key(keys, scores, [](std::int64_t, double& s) { s = 0; });
          };
          return variant;
        },
};

}  // namespace attnguard
