
#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/engine/row_steps.h"

namespace attnguard {

// The sink is prepended as a key of its own, and its column of weights is
// not dropped but added to the next. Rows sum to 1.
const Defect kDefectSinkMassOnFirstKey = {
    .id = "sink-mass-on-first-key",
    .summary = "the sink's share goes to the first key instead of to nothing",
    .cls = DefectClass::kRowSumOrMerge,
    .shows_on = {"num_heads=2 seq_len=24 head_dim=16 sinks=1,-1 "
                 "mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.row_softmax = [](const VariantRow& row, const KeyRanges& keys,
                                   std::span<double> scores) {
            if (keys.empty()) return;
            softmax_row(keys, scores.data(), row.problem.sink(row.head));
            double sum = 0;
            for_each_key(keys, scores,
                         [&](std::int64_t, double& p) { sum += p; });
            scores[static_cast<std::size_t>(keys.first())] += 1 - sum;
          };
          return variant;
        },
};

}  // namespace attnguard
