#include <algorithm>
#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// A stand-in for minus infinity that scores can pass.
const Defect kDefectRunningMaxFromMinusTenThousand = {
    .id = "running-max-from-minus-ten-thousand",
    .summary =
        "the running maximum starts at -10000: a row whose scores are all "
        "below is 0 / 0",
    .cls = DefectClass::kNanInf,
    .shows_on = {"seq_len=24 head_dim=16 mask=causal_bottom_right"},
    .make =
        [] {
          AttentionVariant variant;
          variant.row_softmax = [](const VariantRow& row, const KeyRanges& keys,
                                   std::span<double> scores) {
            const double reference =
                std::max(largest_score(keys, scores), -10000.0);
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
