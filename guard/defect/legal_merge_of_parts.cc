#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"

namespace attnguard {
// Split-KV as it should be. The bits depend on where the parts end, and on
// nothing that a row must not see.
const Defect kDefectLegalMergeOfParts = {
    .id = "legal-merge-of-parts",
    .summary = "legal: parts of 16 keys in fp32, merged by their log-sum-exp",
    .cls = DefectClass::kNumericsNotBug,
    .shows_on = {"num_heads=4 num_kv_heads=2 seq_len=80 head_dim=16 "
                 "mask=causal_bottom_right",
                 "batch=2 seq_len_q=8 seq_len_kv=70,33 head_dim=32 dtype=bf16",
                 "seq_len=40 head_dim=16 mask=sliding_window(left=20,right=0)"},
    .make =
        [] {
          AttentionVariant variant;
          variant.row_softmax = [](const VariantRow&, const KeyRanges& keys,
                                   std::span<double> scores) {
            const auto total = static_cast<float>(log_sum_exp(keys, scores));
            for_each_tile(keys, kTile, [&](const KeyRanges& part) {
              const auto own = static_cast<float>(log_sum_exp(part, scores));
              const float share = std::exp(own - total);
              for_each_key(part, scores, [&](std::int64_t, double& s) {
                s = share * std::exp(static_cast<float>(s) - own);
              });
            });
          };
          return variant;
        },
};

}  // namespace attnguard
