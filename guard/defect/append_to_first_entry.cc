#include <optional>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/storage.h"

namespace attnguard {

// A batch stride that wraps to 0: another sequence's cache is overwritten,
// and the own one keeps what was there.
const Defect kDefectAppendToFirstEntry = {
    .id = "append-to-first-entry",
    .summary =
        "new tokens of every entry are appended to the first one's cache",
    .cls = DefectClass::kCrossSequence,
    .reports = {"Dao-AILab/flash-attention#772"},
    .shows_on = {"batch=2 num_heads=2 seq_len_q=8 seq_len_kv=40,33 head_dim=16 "
                 "mask=causal_bottom_right",
                 "batch=2 num_heads=2 seq_len_q=8 seq_len_kv=40,33 head_dim=16 "
                 "block_size=16 mask=causal_bottom_right"},
    .hides_on =
        "num_heads=2 seq_len_q=8 seq_len_kv=40 head_dim=16 "
        "mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.append = [](const CacheAppend& append) {
            return append_rows(
                append,
                [](const AppendedRow& row) -> std::optional<std::int64_t> {
                  return row.offset(0, row.position);
                });
          };
          return variant;
        },
};

}  // namespace attnguard
