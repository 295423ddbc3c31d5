#include <optional>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/storage.h"

namespace attnguard {

// The length has grown already when the slot is computed from it.
const Defect kDefectAppendOneSlotLate = {
    .id = "append-one-slot-late",
    .summary =
        "new tokens are appended one slot late, where the cache has room",
    .cls = DefectClass::kIndexOverflowOob,
    .shows_on = {"batch=2 num_heads=2 seq_len_q=8 seq_len_kv=40,33 head_dim=16 "
                 "block_size=16 mask=causal_bottom_right",
                 "batch=2 num_heads=2 seq_len_q=8 seq_len_kv=40,33 head_dim=16 "
                 "mask=causal_bottom_right"},
    .make =
        [] {
          AttentionVariant variant;
          variant.append = [](const CacheAppend& append) {
            return append_rows(
                append,
                [](const AppendedRow& row) -> std::optional<std::int64_t> {
                  if (row.position + 1 >= row.append.problem->slots_kv())
                    return std::nullopt;
                  return row.offset(row.batch, row.position + 1);
                });
          };
          return variant;
        },
};

}  // namespace attnguard
