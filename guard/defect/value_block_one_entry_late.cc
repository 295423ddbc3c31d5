#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/storage.h"

namespace attnguard {

// The index moves on between the two loads. Weights and row sums are right.
const Defect kDefectValueBlockOneEntryLate = {
    .id = "value-block-one-entry-late",
    .summary = "keys are read from their block, values from the next one",
    .cls = DefectClass::kIndexOverflowOob,
    .shows_on =
        {"batch=2 num_heads=4 num_kv_heads=2 seq_len_q=8 seq_len_kv=40,33 "
         "head_dim=16 block_size=16 mask=causal_bottom_right"},
    .hides_on =
        "batch=2 num_heads=4 num_kv_heads=2 seq_len_q=8 seq_len_kv=40,33 "
        "head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.row_offset = [](const AttentionCall& call, TensorRole role,
                                  const KvSlot& slot, std::int64_t position) {
            if (!is_paged(call))
              return right_offset(call, role, slot, position);
            const std::int64_t size = call.problem->block_size;
            if (role == TensorRole::kKey)
              return right_offset(call, role, slot, position);
            return block_offset(
                call, role, slot,
                table_entry(call, slot.batch, position / size + 1),
                position % size);
          };
          return variant;
        },
};

}  // namespace attnguard
