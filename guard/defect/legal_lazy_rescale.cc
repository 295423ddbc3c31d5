#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"

namespace attnguard {
namespace {

constexpr double kSlack = 8;

}  // namespace

// The reference of the exponentials need not be the maximum: weights up to
// exp(8) do not overflow. Tiles of 16 keys, fp32.
const Defect kDefectLegalLazyRescale = {
    .id = "legal-lazy-rescale",
    .summary =
        "legal: the running maximum follows only when it grows by more than 8",
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
            double reference = -HUGE_VAL;
            for_each_tile(keys, kTile, [&](const KeyRanges& tile) {
              const double largest = largest_score(tile, scores);
              if (largest > reference + kSlack) reference = largest;
            });
            float sum = 0;
            for_each_key(keys, scores, [&](std::int64_t, double& s) {
              const float p = std::exp(static_cast<float>(s - reference));
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
