#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The mask has one channel for all heads and is read as if it had one for
// each: only the first lies inside it.
const Defect kDefectLaterHeadsUnmasked = {
    .id = "later-heads-unmasked",
    .summary = "heads after the first see every key",
    .cls = DefectClass::kMaskMisread,
    .reports = {"Tencent/ncnn#6869"},
    .shows_on = {"num_heads=4 num_kv_heads=2 seq_len=24 head_dim=16 "
                 "mask=causal_bottom_right"},
    .hides_on = "num_heads=1 seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            if (row.head > 0) see_all(row, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
