#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// KV heads are tiled instead of repeated.
const Defect kDefectKvHeadByModulo = {
    .id = "kv-head-by-modulo",
    .summary = "head h reads KV head h % num_kv_heads",
    .cls = DefectClass::kWrongHeadOrDim,
    .reports = {"ekzhang/jax-js#180", "onnx/onnx#7274", "apple/axlearn#842"},
    .shows_on = {"num_heads=6 num_kv_heads=2 seq_len=24 head_dim=16 "
                 "mask=causal_bottom_right"},
    .hides_on =
        "num_heads=2 num_kv_heads=2 seq_len=24 head_dim=16 "
        "mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.key_slot = [](const Problem& problem, std::int64_t batch,
                                std::int64_t head) {
            return KvSlot{batch, head % problem.num_kv_heads};
          };
          return variant;
        },
};

}  // namespace attnguard
