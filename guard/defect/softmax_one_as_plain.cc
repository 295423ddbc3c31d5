#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// if (sink): a logit of zero is false. softmax1 is exactly that logit.
const Defect kDefectSoftmaxOneAsPlain = {
    .id = "softmax-one-as-plain",
    .summary = "a sink of 0 counts as none",
    .cls = DefectClass::kRowSumOrMerge,
    .shows_on =
        {"num_heads=2 seq_len=24 head_dim=16 sinks=0 mask=causal_bottom_right"},
    .hides_on =
        "num_heads=2 seq_len=24 head_dim=16 sinks=1,-1 "
        "mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.sink = [](const VariantRow& row) {
            const double sink = row.problem.sink(row.head);
            return sink == 0 ? -HUGE_VAL : sink;
          };
          return variant;
        },
};

}  // namespace attnguard
