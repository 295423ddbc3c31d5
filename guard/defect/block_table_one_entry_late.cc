#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/storage.h"

namespace attnguard {

// The table is read at a position that already counts the token to come, or
// its first entry is taken for a header.
const Defect kDefectBlockTableOneEntryLate = {
    .id = "block-table-one-entry-late",
    .summary = "token j is looked for in the block after its own",
    .cls = DefectClass::kCrossSequence,
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
            return block_offset(
                call, role, slot,
                table_entry(call, slot.batch, position / size + 1),
                position % size);
          };
          return variant;
        },
};

}  // namespace attnguard
