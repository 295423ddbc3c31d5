#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"

namespace attnguard {
// The partial results are normalised, and the merge has lost or mislaid their
// log-sum-exp. Rows sum to 1.
const Defect kDefectMergeWithEqualWeights = {
    .id = "merge-with-equal-weights",
    .summary = "parts of 16 keys are averaged, whatever their share",
    .cls = DefectClass::kRowSumOrMerge,
    .reports = {"Dao-AILab/flash-attention#2388",
                "flashinfer-ai/flashinfer#50"},
    .shows_on = {"seq_len=40 head_dim=16 mask=causal_bottom_right",
                 "seq_len_q=1 seq_len_kv=40 head_dim=16"},
    .hides_on = "seq_len=16 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.row_softmax = [](const VariantRow&, const KeyRanges& keys,
                                   std::span<double> scores) {
            double parts = 0;
            for_each_tile(keys, kTile, [&](const KeyRanges& part) {
              softmax_row(part, scores.data());
              ++parts;
            });
            for_each_key(keys, scores,
                         [&](std::int64_t, double& p) { p /= parts; });
          };
          return variant;
        },
};

}  // namespace attnguard
