#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/storage.h"

namespace attnguard {

// HND and NHD caches have the same size and the same names. With one KV head
// they are the same.
const Defect kDefectBlockAxesSwapped = {
    .id = "block-axes-swapped",
    .summary = "blocks of [head, token] are read as [token, head]",
    .cls = DefectClass::kWrongHeadOrDim,
    .shows_on =
        {"batch=2 num_heads=4 num_kv_heads=2 seq_len_q=8 seq_len_kv=40,33 "
         "head_dim=16 block_size=16 mask=causal_bottom_right"},
    .hides_on =
        "batch=2 num_heads=4 num_kv_heads=1 seq_len_q=8 seq_len_kv=40,33 "
        "head_dim=16 block_size=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.row_offset = [](const AttentionCall& call, TensorRole role,
                                  const KvSlot& slot, std::int64_t position) {
            if (!is_paged(call))
              return right_offset(call, role, slot, position);
            const std::int64_t size = call.problem->block_size;
            if (call.problem->layout != Layout::kBhsd)
              return right_offset(call, role, slot, position);
            const std::int64_t row =
                position % size * call.problem->num_kv_heads + slot.kv_head;
            return block_offset(call, role, {slot.batch, 0},
                                table_entry(call, slot.batch, position / size),
                                row);
          };
          return variant;
        },
};

}  // namespace attnguard
