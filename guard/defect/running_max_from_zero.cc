#include <algorithm>
#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// Zeroed registers instead of minus infinity. As long as some score is
// positive, or all are moderate, nothing is lost.
const Defect kDefectRunningMaxFromZero = {
    .id = "running-max-from-zero",
    .summary =
        "the running maximum starts at 0: a row whose scores are all below "
        "-104 is 0 / 0",
    .cls = DefectClass::kNanInf,
    .shows_on =
        {"seq_len=24 head_dim=16 mask=causal_bottom_right",
         "seq_len=24 head_dim=16 mask=causal_bottom_right softmax_scale=50"},
    .make =
        [] {
          AttentionVariant variant;
          variant.row_softmax = [](const VariantRow& row, const KeyRanges& keys,
                                   std::span<double> scores) {
            const double reference = std::max(largest_score(keys, scores), 0.0);
            float sum = std::exp(
                static_cast<float>(row.problem.sink(row.head) - reference));
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
