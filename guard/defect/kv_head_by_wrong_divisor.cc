#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The group's size and the number of groups change places: right when they are
// equal, as with 4 heads on 2 or 64 on 8.
const Defect kDefectKvHeadByWrongDivisor = {
    .id = "kv-head-by-wrong-divisor",
    .summary = "head h reads KV head h / num_kv_heads",
    .cls = DefectClass::kWrongHeadOrDim,
    .reports = {"HazyResearch/HipKittens#22"},
    .shows_on = {"num_heads=6 num_kv_heads=3 seq_len=24 head_dim=16 "
                 "mask=causal_bottom_right",
                 "num_heads=6 num_kv_heads=2 seq_len=24 head_dim=16 "
                 "mask=causal_bottom_right"},
    .hides_on =
        "num_heads=4 num_kv_heads=2 seq_len=24 head_dim=16 "
        "mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.key_slot = [](const Problem& problem, std::int64_t batch,
                                std::int64_t head) {
            return KvSlot{batch,
                          head / problem.num_kv_heads % problem.num_kv_heads};
          };
          return variant;
        },
};

}  // namespace attnguard
