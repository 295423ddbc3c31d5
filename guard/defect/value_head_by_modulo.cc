#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// K is repeated over its group of heads, V is tiled.
const Defect kDefectValueHeadByModulo = {
    .id = "value-head-by-modulo",
    .summary = "keys are right, values come from KV head h % num_kv_heads",
    .cls = DefectClass::kWrongHeadOrDim,
    .shows_on = {"num_heads=6 num_kv_heads=2 seq_len=24 head_dim=16 "
                 "mask=causal_bottom_right"},
    .hides_on =
        "num_heads=2 num_kv_heads=2 seq_len=24 head_dim=16 "
        "mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.value_slot = [](const Problem& problem, std::int64_t batch,
                                  std::int64_t head) {
            return KvSlot{batch, head % problem.num_kv_heads};
          };
          return variant;
        },
};

}  // namespace attnguard
