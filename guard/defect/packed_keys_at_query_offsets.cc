#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/storage.h"

namespace attnguard {

// One cu_seqlens serves for both sides. Right in self-attention, where the
// two are equal.
const Defect kDefectPackedKeysAtQueryOffsets = {
    .id = "packed-keys-at-query-offsets",
    .summary =
        "packed keys are looked for where the queries of their sequence begin",
    .cls = DefectClass::kCrossSequence,
    .shows_on = {"batch=3 seq_len_q=8,3,5 seq_len_kv=24,15,21 head_dim=16 "
                 "packed=true mask=causal_bottom_right"},
    .hides_on =
        "batch=3 seq_len=24,15,21 head_dim=16 packed=true "
        "mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.row_offset = [](const AttentionCall& call, TensorRole role,
                                  const KvSlot& slot, std::int64_t position) {
            if (!is_packed(call))
              return right_offset(call, role, slot, position);
            return packed_offset(call, role, slot,
                                 call.cu_seqlens_q[slot.batch] + position);
          };
          return variant;
        },
};

}  // namespace attnguard
