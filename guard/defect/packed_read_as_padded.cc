#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/storage.h"

namespace attnguard {

// The batch stride of a padded tensor on one that has none.
const Defect kDefectPackedReadAsPadded = {
    .id = "packed-read-as-padded",
    .summary =
        "packed sequences are looked for at multiples of the longest length",
    .cls = DefectClass::kCrossSequence,
    .shows_on = {"batch=3 seq_len=24,15,21 head_dim=16 packed=true "
                 "mask=causal_bottom_right"},
    .hides_on =
        "batch=3 seq_len=24 head_dim=16 packed=true mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.row_offset = [](const AttentionCall& call, TensorRole role,
                                  const KvSlot& slot, std::int64_t position) {
            if (!is_packed(call))
              return right_offset(call, role, slot, position);
            return packed_offset(
                call, role, slot,
                slot.batch * call.problem->max_len_kv() + position);
          };
          return variant;
        },
};

}  // namespace attnguard
