#include <algorithm>
#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// Eight bits: a sum of 256 equal weights stops growing, and shorter ones are
// off by a part in hundreds.
const Defect kDefectRowSumInBf16 = {
    .id = "row-sum-in-bf16",
    .summary = "the denominator is summed up in bf16",
    .cls = DefectClass::kNanInf,
    .shows_on = {"seq_len_q=8 seq_len_kv=70 head_dim=16",
                 "seq_len=24 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 mask=sliding_window(left=0,right=0)",
    .make =
        [] {
          AttentionVariant variant;
          variant.row_softmax = [](const VariantRow& row, const KeyRanges& keys,
                                   std::span<double> scores) {
            const double sink = row.problem.sink(row.head);
            const double reference =
                std::max(largest_score(keys, scores), sink);
            double sum = quantize(Dtype::kBf16, std::exp(sink - reference));
            for_each_key(keys, scores, [&](std::int64_t, double& s) {
              s = std::exp(s - reference);
              sum = quantize(Dtype::kBf16, sum + s);
            });
            for_each_key(keys, scores,
                         [&](std::int64_t, double& p) { p /= sum; });
          };
          return variant;
        },
};

}  // namespace attnguard
