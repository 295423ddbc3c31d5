#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The last step of an online softmax is missing: rows sum to anything from 1
// to the number of their keys.
const Defect kDefectNotNormalised = {
    .id = "not-normalised",
    .summary = "the output is never divided by the sum of the weights",
    .cls = DefectClass::kRowSumOrMerge,
    .shows_on = {"seq_len=24 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 mask=sliding_window(left=0,right=0)",
    .make =
        [] {
          AttentionVariant variant;
          variant.row_softmax = [](const VariantRow&, const KeyRanges& keys,
                                   std::span<double> scores) {
            const double largest = largest_score(keys, scores);
            for_each_key(keys, scores, [&](std::int64_t, double& s) {
              s = std::exp(s - largest);
            });
          };
          return variant;
        },
};

}  // namespace attnguard
