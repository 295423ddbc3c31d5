#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"

namespace attnguard {
// The offset seq_len_kv - seq_len_q is unsigned. Where it is negative, the
// position of a tile's first row wraps to a huge number, the tile looks as if
// it lay behind every key, and its mask is skipped.
const Defect kDefectCausalOffsetUnsigned = {
    .id = "causal-offset-unsigned",
    .summary =
        "with more queries than keys, row tiles that begin before the first "
        "key are not masked",
    .cls = DefectClass::kFutureLeakDirect,
    .reports = {"pytorch/pytorch#193632"},
    .shows_on =
        {"seq_len_q=40 seq_len_kv=30 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=40 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            const std::int64_t first_row = round_down(row.place.q_index, kTile);
            const std::int64_t offset =
                row.place.seq_len_kv - row.place.seq_len_q;
            if (!keys.empty() && first_row + offset < 0) see_all(row, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
