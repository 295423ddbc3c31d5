#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The sink is added in the last step, after softmax_lse was stored.
const Defect kDefectLseWithoutSink = {
    .id = "lse-without-sink",
    .summary = "softmax_lse leaves the sink out",
    .cls = DefectClass::kRowSumOrMerge,
    .shows_on = {"num_heads=2 seq_len=24 head_dim=16 sinks=1,-1 "
                 "mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.lse = [](const VariantRow& row, double& lse) {
            if (!row.problem.sinks.empty())
              lse += std::log1p(-std::exp(row.problem.sink(row.head) - lse));
          };
          return variant;
        },
};

}  // namespace attnguard
