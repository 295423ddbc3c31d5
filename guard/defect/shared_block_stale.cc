#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/storage.h"

namespace attnguard {

// Copy-on-write gives the second request a block of its own before the first
// has written it.
const Defect kDefectSharedBlockStale = {
    .id = "shared-block-stale",
    .summary =
        "entries that share a prefix read its last block from a copy that was "
        "never filled",
    .cls = DefectClass::kStaleOrUninit,
    .shows_on = {"batch=2 seq_len_q=8 seq_len_kv=40 head_dim=16 block_size=16 "
                 "shared_prefix=16 mask=causal_bottom_right"},
    .hides_on =
        "batch=2 seq_len_q=8 seq_len_kv=40 head_dim=16 block_size=16 "
        "mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.row_offset = [](const AttentionCall& call, TensorRole role,
                                  const KvSlot& slot, std::int64_t position) {
            if (!is_paged(call))
              return right_offset(call, role, slot, position);
            const std::int64_t size = call.problem->block_size;
            const std::int64_t last = call.problem->shared_prefix / size - 1;
            if (slot.batch == 0 || last < 0 || position / size != last)
              return right_offset(call, role, slot, position);
            return block_offset(
                call, role, slot,
                table_entry(call, slot.batch, call.block_table_width - 1),
                position % size);
          };
          return variant;
        },
};

}  // namespace attnguard
