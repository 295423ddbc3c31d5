#include <optional>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/storage.h"

namespace attnguard {

// Two copies, one of which is behind a condition.
const Defect kDefectAppendKeyOnly = {
    .id = "append-key-only",
    .summary = "new keys are appended and new values are not",
    .cls = DefectClass::kStaleOrUninit,
    .shows_on = {"batch=2 num_heads=2 seq_len_q=8 seq_len_kv=40,33 head_dim=16 "
                 "mask=causal_bottom_right"},
    .hides_on =
        "num_heads=2 num_kv_heads=1 seq_len=24 head_dim_qk=24 head_dim_v=16 "
        "value_in_key=true mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.append = [](const CacheAppend& append) {
            return append_rows(
                append,
                [](const AppendedRow& row) -> std::optional<std::int64_t> {
                  if (row.role == TensorRole::kValue) return std::nullopt;
                  return row.offset(row.batch, row.position);
                });
          };
          return variant;
        },
};

}  // namespace attnguard
