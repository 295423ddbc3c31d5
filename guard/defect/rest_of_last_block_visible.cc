#include <algorithm>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"

namespace attnguard {
// The key loop counts blocks, and the last one is taken whole: the slots
// behind the last token hold what their last user left.
const Defect kDefectRestOfLastBlockVisible = {
    .id = "rest-of-last-block-visible",
    .summary =
        "a row that sees the last token sees the rest of its block of 16, "
        "where the tensor has room",
    .cls = DefectClass::kPaddingOrUnusedSlotLeak,
    .reports = {"tenstorrent/tt-metal#41215", "hw-native-sys/simpler#72"},
    .shows_on =
        {"batch=2 num_heads=4 num_kv_heads=2 seq_len_q=8 seq_len_kv=40,33 "
         "head_dim=16 block_size=16 mask=causal_bottom_right",
         "batch=2 seq_len_q=1 seq_len_kv=40,33 head_dim=16 block_size=16"},
    .hides_on =
        "batch=2 num_heads=4 num_kv_heads=2 seq_len_q=8 seq_len_kv=40,32 "
        "head_dim=16 block_size=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.place = [](const VariantRow&, RowPlace&) {
          };  // Slots past the end are read.
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            const std::int64_t end = row.place.seq_len_kv;
            if (keys.empty() || keys.last() + 1 != end) return;
            keys.append(
                end, std::min(round_up(end, kBlock), row.problem.max_len_kv()));
          };
          return variant;
        },
};

}  // namespace attnguard
