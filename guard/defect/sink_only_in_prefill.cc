#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The decode kernels take no pointer to it. A model that was trained with a
// sink answers with nothing.
const Defect kDefectSinkOnlyInPrefill = {
    .id = "sink-only-in-prefill",
    .summary = "a single query has no sink",
    .cls = DefectClass::kPrefillNeDecode,
    .reports = {"kekzl/imp#1345"},
    .shows_on = {"num_heads=2 seq_len_q=1 seq_len_kv=24 head_dim=16 sinks=1,-1 "
                 "mask=causal_bottom_right"},
    .hides_on =
        "num_heads=2 seq_len=24 head_dim=16 sinks=1,-1 "
        "mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.sink = [](const VariantRow& row) {
            return row.place.seq_len_q == 1 ? -HUGE_VAL
                                            : row.problem.sink(row.head);
          };
          return variant;
        },
};

}  // namespace attnguard
