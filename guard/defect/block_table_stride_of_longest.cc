#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/storage.h"

namespace attnguard {

// The table is wider than that. The first entry is right, the others read
// blocks of the one before and of nobody.
const Defect kDefectBlockTableStrideOfLongest = {
    .id = "block-table-stride-of-longest",
    .summary =
        "rows of the block table are as far apart as the longest sequence has "
        "blocks",
    .cls = DefectClass::kCrossSequence,
    .shows_on =
        {"batch=2 num_heads=4 num_kv_heads=2 seq_len_q=8 seq_len_kv=40,33 "
         "head_dim=16 block_size=16 mask=causal_bottom_right"},
    .hides_on =
        "num_heads=4 num_kv_heads=2 seq_len_q=8 seq_len_kv=40 head_dim=16 "
        "block_size=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.row_offset = [](const AttentionCall& call, TensorRole role,
                                  const KvSlot& slot, std::int64_t position) {
            if (!is_paged(call))
              return right_offset(call, role, slot, position);
            const std::int64_t size = call.problem->block_size;
            const std::int64_t width =
                (call.problem->max_len_kv() + size - 1) / size;
            return block_offset(
                call, role, slot,
                call.block_table[slot.batch * width + position / size],
                position % size);
          };
          return variant;
        },
};

}  // namespace attnguard
