#include <cmath>
#include <vector>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"

namespace attnguard {
// One library keeps its log-sum-exp in base 2, the other merges with exp. The
// share of the larger part is overstated, more so the longer the prefix. Rows
// sum to 1.
const Defect kDefectMergeInWrongBase = {
    .id = "merge-in-wrong-base",
    .summary =
        "parts of 16 keys are merged with exp, though their log-sum-exp is in "
        "base 2",
    .cls = DefectClass::kRowSumOrMerge,
    .reports = {"sgl-project/sglang#35045"},
    .shows_on = {"seq_len=40 head_dim=16 mask=causal_bottom_right",
                 "seq_len_q=1 seq_len_kv=40 head_dim=16"},
    .hides_on = "seq_len=16 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.row_softmax = [](const VariantRow&, const KeyRanges& keys,
                                   std::span<double> scores) {
            std::vector<KeyRanges> parts;
            std::vector<double>
                shares;  // log2 of each part's sum, taken for log
            for_each_tile(keys, kTile, [&](const KeyRanges& part) {
              parts.push_back(part);
              shares.push_back(log_sum_exp(part, scores) / std::log(2.0));
            });
            KeyRanges all;
            all.append(0, static_cast<std::int64_t>(shares.size()));
            softmax_row(all, shares.data());
            for (std::size_t n = 0; n < parts.size(); ++n) {
              softmax_row(parts[n], scores.data());
              for_each_key(parts[n], scores,
                           [&](std::int64_t, double& p) { p *= shares[n]; });
            }
          };
          return variant;
        },
};

}  // namespace attnguard
