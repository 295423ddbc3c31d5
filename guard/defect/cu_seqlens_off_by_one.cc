#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/storage.h"

namespace attnguard {

// The prefix sum is taken up to the sequence, or past it: the first key is
// the last of the sequence before.
const Defect kDefectCuSeqlensOffByOne = {
    .id = "cu-seqlens-off-by-one",
    .summary = "each packed sequence but the first begins one token early",
    .cls = DefectClass::kCrossSequence,
    .shows_on = {"batch=3 seq_len=24,15,21 head_dim=16 packed=true "
                 "mask=causal_bottom_right"},
    .hides_on = "batch=3 seq_len=24,15,21 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.row_offset = [](const AttentionCall& call, TensorRole role,
                                  const KvSlot& slot, std::int64_t position) {
            if (!is_packed(call))
              return right_offset(call, role, slot, position);
            const std::int64_t begin = call.cu_seqlens_kv[slot.batch];
            return packed_offset(call, role, slot,
                                 begin - (slot.batch > 0) + position);
          };
          return variant;
        },
};

}  // namespace attnguard
