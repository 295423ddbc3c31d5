#include <optional>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/storage.h"

namespace attnguard {

// The length has not grown yet when the slot is computed from it.
const Defect kDefectAppendOverPreviousToken = {
    .id = "append-over-previous-token",
    .summary = "new tokens are appended one slot early, over the token before",
    .cls = DefectClass::kPastDropped,
    .shows_on = {"batch=2 num_heads=2 seq_len_q=8 seq_len_kv=40,33 head_dim=16 "
                 "mask=causal_bottom_right",
                 "batch=2 num_heads=2 seq_len_q=8 seq_len_kv=40,33 head_dim=16 "
                 "block_size=16 mask=causal_bottom_right"},
    .make =
        [] {
          AttentionVariant variant;
          variant.append = [](const CacheAppend& append) {
            return append_rows(
                append,
                [](const AppendedRow& row) -> std::optional<std::int64_t> {
                  if (row.position == 0) return std::nullopt;
                  return row.offset(row.batch, row.position - 1);
                });
          };
          return variant;
        },
};

}  // namespace attnguard
