#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"

namespace attnguard {
// Each part's sum is relative to its own maximum. Added up without bringing
// them to a common one, a part of low scores weighs as much as one of high
// scores.
const Defect kDefectMergeWithoutRescaling = {
    .id = "merge-without-rescaling",
    .summary = "parts of 16 keys are merged as if they had the same maximum",
    .cls = DefectClass::kRowSumOrMerge,
    .shows_on = {"seq_len=40 head_dim=16 mask=causal_bottom_right",
                 "seq_len_q=1 seq_len_kv=40 head_dim=16"},
    .hides_on = "seq_len=16 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.row_softmax = [](const VariantRow&, const KeyRanges& keys,
                                   std::span<double> scores) {
            double sum = 0;
            for_each_tile(keys, kTile, [&](const KeyRanges& part) {
              const double reference = largest_score(part, scores);
              for_each_key(part, scores, [&](std::int64_t, double& s) {
                sum += s = std::exp(s - reference);
              });
            });
            for_each_key(keys, scores,
                         [&](std::int64_t, double& p) { p /= sum; });
          };
          return variant;
        },
};

}  // namespace attnguard
