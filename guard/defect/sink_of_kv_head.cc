#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// There is one logit for each query head; the kernel has the index of the KV
// head at hand.
const Defect kDefectSinkOfKvHead = {
    .id = "sink-of-kv-head",
    .summary = "heads that share keys share the sink of the KV head's index",
    .cls = DefectClass::kWrongHeadOrDim,
    .shows_on = {"num_heads=4 num_kv_heads=2 seq_len=24 head_dim=16 "
                 "sinks=2,-1,0.5,-2 mask=causal_bottom_right"},
    .hides_on =
        "num_heads=4 seq_len=24 head_dim=16 sinks=2,-1,0.5,-2 "
        "mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.sink = [](const VariantRow& row) {
            return row.problem.sink(row.problem.kv_head_of(row.head));
          };
          return variant;
        },
};

}  // namespace attnguard
