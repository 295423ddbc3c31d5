#include <optional>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/storage.h"

namespace attnguard {

// One length for the whole batch. Shorter entries keep a hole, and their new
// tokens lie where nobody looks.
const Defect kDefectAppendAtLongestLength = {
    .id = "append-at-longest-length",
    .summary =
        "every entry's new tokens are appended where the longest one ends",
    .cls = DefectClass::kPaddingOrUnusedSlotLeak,
    .shows_on = {"batch=2 num_heads=2 seq_len_q=8 seq_len_kv=40,33 head_dim=16 "
                 "mask=causal_bottom_right"},
    .hides_on =
        "batch=2 num_heads=2 seq_len_q=8 seq_len_kv=40 head_dim=16 "
        "mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.append = [](const CacheAppend& append) {
            return append_rows(
                append,
                [](const AppendedRow& row) -> std::optional<std::int64_t> {
                  const Problem& problem = *row.append.problem;
                  return row.offset(row.batch, row.position +
                                                   problem.max_len_kv() -
                                                   problem.len_kv(row.batch));
                });
          };
          return variant;
        },
};

}  // namespace attnguard
