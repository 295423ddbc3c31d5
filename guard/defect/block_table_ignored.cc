#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/storage.h"

namespace attnguard {

// A fresh cache hands out blocks in order, so the first request of a test is
// right.
const Defect kDefectBlockTableIgnored = {
    .id = "block-table-ignored",
    .summary = "blocks are taken to lie one after another, entry by entry",
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
                slot.batch * (call.block_table_width - 1) + position / size,
                position % size);
          };
          return variant;
        },
};

}  // namespace attnguard
