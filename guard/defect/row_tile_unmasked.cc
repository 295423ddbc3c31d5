#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"

namespace attnguard {
// One tile of rows takes a path without a mask: the first behind a boundary
// that the launch counted in another unit. Everything before and after is
// right, so that a comparison of a whole tensor averages it away.
const Defect kDefectRowTileUnmasked = {
    .id = "row-tile-unmasked",
    .summary = "rows 32 to 47 see every key, all others are right",
    .cls = DefectClass::kFutureLeakDirect,
    .shows_on = {"seq_len=80 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=32 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            if (round_down(row.place.q_index, kTile) == 2 * kTile)
              see_all(row, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
