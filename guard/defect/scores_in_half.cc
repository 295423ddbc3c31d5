#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The row is then the difference of two infinities. Smaller scores lose all
// but eleven bits.
const Defect kDefectScoresInHalf = {
    .id = "scores-in-half",
    .summary = "scores are held in fp16: beyond 65504 they are infinite",
    .cls = DefectClass::kNanInf,
    .shows_on = {"seq_len=40 head_dim=16 mask=causal_bottom_right",
                 "seq_len_q=4 seq_len_kv=2080 head_dim=16"},
    .hides_on = "seq_len=24 head_dim=16 mask=sliding_window(left=0,right=0)",
    .make =
        [] {
          AttentionVariant variant;
          variant.scores = [](const VariantRow&, const KeyRanges& keys,
                              std::span<double> scores) {
            for_each_key(keys, scores, [](std::int64_t, double& s) {
              s = quantize(Dtype::kFp16, s);
            });
          };
          return variant;
        },
};

}  // namespace attnguard
