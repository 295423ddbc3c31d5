#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/storage.h"

namespace attnguard {
namespace {

constexpr std::int64_t kAssumed = 16;

}  // namespace

// A constant that was right for the first cache it was written for.
const Defect kDefectBlockSizeOf16Assumed = {
    .id = "block-size-of-16-assumed",
    .summary = "blocks are taken to hold 16 tokens",
    .cls = DefectClass::kCrossSequence,
    .shows_on =
        {"batch=2 num_heads=4 num_kv_heads=2 seq_len_q=8 seq_len_kv=40,33 "
         "head_dim=16 block_size=8 mask=causal_bottom_right",
         "batch=2 num_heads=4 num_kv_heads=2 seq_len_q=8 seq_len_kv=40,33 "
         "head_dim=16 block_size=32 mask=causal_bottom_right"},
    .hides_on =
        "batch=2 num_heads=4 num_kv_heads=2 seq_len_q=8 seq_len_kv=40,33 "
        "head_dim=16 block_size=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.row_offset = [](const AttentionCall& call, TensorRole role,
                                  const KvSlot& slot, std::int64_t position) {
            if (!is_paged(call))
              return right_offset(call, role, slot, position);
            const std::int64_t size = call.problem->block_size;
            static_cast<void>(size);
            return block_offset(
                call, role, slot,
                table_entry(call, slot.batch, position / kAssumed),
                position % kAssumed);
          };
          return variant;
        },
};

}  // namespace attnguard
