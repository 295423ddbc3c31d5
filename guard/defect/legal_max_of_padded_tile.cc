#include <algorithm>
#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// Any reference cancels in the quotient, as long as nothing underflows: kernels
// that rescale late let it be 8 binary orders too large, no more.
const Defect kDefectLegalMaxOfPaddedTile = {
    .id = "legal-max-of-padded-tile",
    .summary =
        "legal: the maximum counts the zeros that fill a tile, the sum does "
        "not",
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
            const double largest = largest_score(keys, scores);
            const double reference =
                std::clamp(0.0, largest, largest + 8 * std::log(2.0));
            double sum = 0;
            for_each_key(keys, scores, [&](std::int64_t, double& s) {
              sum += s = std::exp(s - reference);
            });
            for_each_key(keys, scores,
                         [&](std::int64_t, double& p) { p /= sum; });
          };
          return variant;
        },
};

}  // namespace attnguard
