#include <algorithm>
#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"

namespace attnguard {
// A tile is read whole, its missing keys are zeros, and a score of zero has a
// weight: exp(0). The zero values add nothing to the output, so the row is too
// small.
const Defect kDefectTailLanesInDenominator = {
    .id = "tail-lanes-in-denominator",
    .summary =
        "zero keys that fill the last tile of 32 are counted in the "
        "denominator",
    .cls = DefectClass::kPaddingOrUnusedSlotLeak,
    .reports = {"flashinfer-ai/flashinfer#3716",
                "flashinfer-ai/flashinfer#5090", "tenstorrent/tt-metal#54833"},
    .shows_on = {"seq_len_q=8 seq_len_kv=40 head_dim=16",
                 "seq_len=24 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=32 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.row_softmax = [](const VariantRow& row, const KeyRanges& keys,
                                   std::span<double> scores) {
            const std::int64_t length = row.place.seq_len_kv;
            const auto lanes =
                static_cast<double>(round_up(length, kWideTile) - length);
            const double largest = std::max(largest_score(keys, scores), 0.0);
            double sum = lanes * std::exp(-largest);
            for_each_key(keys, scores, [&](std::int64_t, double& s) {
              sum += s = std::exp(s - largest);
            });
            for_each_key(keys, scores,
                         [&](std::int64_t, double& p) { p /= sum; });
          };
          return variant;
        },
};

}  // namespace attnguard
