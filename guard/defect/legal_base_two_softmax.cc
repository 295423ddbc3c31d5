#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// 2^(s log2 e) is exp(s): the usual way on hardware whose fast instruction is
// exp2.
const Defect kDefectLegalBaseTwoSoftmax = {
    .id = "legal-base-two-softmax",
    .summary = "legal: softmax in fp32 in base 2, scores scaled by log2(e)",
    .cls = DefectClass::kNumericsNotBug,
    .shows_on = {"num_heads=4 num_kv_heads=2 seq_len=80 head_dim=16 "
                 "mask=causal_bottom_right",
                 "batch=2 seq_len_q=8 seq_len_kv=70,33 head_dim=32 dtype=bf16",
                 "seq_len=40 head_dim=16 mask=sliding_window(left=20,right=0)"},
    .hides_on =
        "num_heads=4 num_kv_heads=2 seq_len=80 head_dim=16 "
        "mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.row_softmax = [](const VariantRow&, const KeyRanges& keys,
                                   std::span<double> scores) {
            constexpr float kLog2E = 1.44269504f;
            const float largest =
                static_cast<float>(largest_score(keys, scores)) * kLog2E;
            float sum = 0;
            for_each_key(keys, scores, [&](std::int64_t, double& s) {
              const float p =
                  std::exp2(static_cast<float>(s) * kLog2E - largest);
              sum += p;
              s = p;
            });
            for_each_key(keys, scores,
                         [&](std::int64_t, double& p) { p /= sum; });
          };
          return variant;
        },
};

}  // namespace attnguard
