#include <algorithm>
#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"

namespace attnguard {
// An online softmax over tiles of 16 keys. Keys of early tiles keep the weight
// that they had against an earlier, smaller maximum. Rows whose first tile
// holds the maximum are right.
const Defect kDefectAccumulatorNotRescaled = {
    .id = "accumulator-not-rescaled",
    .summary =
        "when the running maximum grows, the sum is rescaled and the output is "
        "not",
    .cls = DefectClass::kRowSumOrMerge,
    .shows_on = {"seq_len=40 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=16 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.row_softmax = [](const VariantRow&, const KeyRanges& keys,
                                   std::span<double> scores) {
            const double final_sum = log_sum_exp(keys, scores);
            const double final_largest = largest_score(keys, scores);
            double largest = -HUGE_VAL;
            for_each_tile(keys, kTile, [&](const KeyRanges& tile) {
              largest = std::max(largest, largest_score(tile, scores));
              for_each_key(tile, scores, [&](std::int64_t, double& s) {
                s = std::exp(s - final_sum + final_largest - largest);
              });
            });
          };
          return variant;
        },
};

}  // namespace attnguard
