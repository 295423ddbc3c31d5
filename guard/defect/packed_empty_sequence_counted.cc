#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/storage.h"

namespace attnguard {

// A length of zero is rounded up to one where the offsets are summed.
const Defect kDefectPackedEmptySequenceCounted = {
    .id = "packed-empty-sequence-counted",
    .summary = "an empty packed sequence shifts those after it by one token",
    .cls = DefectClass::kCrossSequence,
    .shows_on = {"batch=3 seq_len=9,0,12 head_dim=16 packed=true "
                 "mask=causal_bottom_right"},
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
            std::int64_t begin = call.cu_seqlens_kv[slot.batch];
            for (std::int64_t b = 0; b < slot.batch; ++b)
              begin += call.problem->len_kv(b) == 0;
            return packed_offset(call, role, slot, begin + position);
          };
          return variant;
        },
};

}  // namespace attnguard
