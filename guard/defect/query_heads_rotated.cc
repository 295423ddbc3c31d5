#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The index of the head is off by one in the query alone; the output of each
// head is another head's.
const Defect kDefectQueryHeadsRotated = {
    .id = "query-heads-rotated",
    .summary = "head h computes the queries of head h + 1",
    .cls = DefectClass::kWrongHeadOrDim,
    .shows_on = {"num_heads=4 num_kv_heads=2 seq_len=24 head_dim=16 "
                 "mask=causal_bottom_right"},
    .hides_on = "num_heads=1 seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.query_head = [](const Problem& problem, std::int64_t head) {
            return (head + 1) % problem.num_heads;
          };
          return variant;
        },
};

}  // namespace attnguard
