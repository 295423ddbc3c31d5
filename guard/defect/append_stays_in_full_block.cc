#include <optional>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/storage.h"

namespace attnguard {

// block_table[(position - 1) / block_size]: right in all but one of
// block_size steps.
const Defect kDefectAppendStaysInFullBlock = {
    .id = "append-stays-in-full-block",
    .summary =
        "the first token of a new block is appended to the start of the block "
        "before",
    .cls = DefectClass::kIndexOverflowOob,
    .shows_on = {"batch=2 num_heads=2 seq_len_q=8 seq_len_kv=40,33 head_dim=16 "
                 "block_size=16 mask=causal_bottom_right"},
    .hides_on =
        "batch=2 num_heads=2 seq_len_q=8 seq_len_kv=40,33 head_dim=16 "
        "mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.append = [](const CacheAppend& append) {
            return append_rows(
                append,
                [](const AppendedRow& row) -> std::optional<std::int64_t> {
                  const std::int64_t size = row.append.problem->block_size;
                  const bool edge =
                      size > 0 && row.position > 0 && row.position % size == 0;
                  return row.offset(row.batch,
                                    edge ? row.position - size : row.position);
                });
          };
          return variant;
        },
};

}  // namespace attnguard
