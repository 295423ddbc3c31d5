#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"

namespace attnguard {
// Key tiles are skipped or kept as a whole, and the tile on the diagonal,
// which needs its elements masked, is kept as it is.
const Defect kDefectDiagonalTileUnmasked = {
    .id = "diagonal-tile-unmasked",
    .summary = "a row sees the rest of the key tile that its last key lies in",
    .cls = DefectClass::kFutureLeakDirect,
    .shows_on = {"seq_len=40 head_dim=16 mask=causal_bottom_right"},
    .hides_on =
        "seq_len_q=1 seq_len_kv=40 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            if (keys.empty()) return;
            const std::int64_t next = keys.last() + 1;
            see(row, next, round_up(next, kTile), keys);
          };
          return variant;
        },
};

}  // namespace attnguard
