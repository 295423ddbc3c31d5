#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The weights of every row sum to 1, which is what is wrong: part of the
// mass is the sink's.
const Defect kDefectSinkIgnored = {
    .id = "sink-ignored",
    .summary = "the sink is left out of the denominator",
    .cls = DefectClass::kRowSumOrMerge,
    .shows_on = {"num_heads=2 seq_len=24 head_dim=16 sinks=1,-1 "
                 "mask=causal_bottom_right",
                 "num_heads=2 seq_len_q=1 seq_len_kv=24 head_dim=16 sinks=1,-1 "
                 "mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.sink = [](const VariantRow&) { return -HUGE_VAL; };
          return variant;
        },
};

}  // namespace attnguard
