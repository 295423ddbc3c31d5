#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// One side of the interface counts heads from the other end.
const Defect kDefectKvHeadsReversed = {
    .id = "kv-heads-reversed",
    .summary = "KV heads are read in reverse order",
    .cls = DefectClass::kWrongHeadOrDim,
    .shows_on = {"num_heads=6 num_kv_heads=2 seq_len=24 head_dim=16 "
                 "mask=causal_bottom_right"},
    .hides_on =
        "num_heads=6 num_kv_heads=1 seq_len=24 head_dim=16 "
        "mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.key_slot = [](const Problem& problem, std::int64_t batch,
                                std::int64_t head) {
            return KvSlot{batch,
                          problem.num_kv_heads - 1 - problem.kv_head_of(head)};
          };
          return variant;
        },
};

}  // namespace attnguard
