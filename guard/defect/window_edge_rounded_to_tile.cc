#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"

namespace attnguard {
// Tiles outside the window are skipped, and the elements of the tile that it
// cuts are not masked.
const Defect kDefectWindowEdgeRoundedToTile = {
    .id = "window-edge-rounded-to-tile",
    .summary = "the left edge of a window is rounded down to a tile of 16",
    .cls = DefectClass::kWindowIgnored,
    .shows_on = {"seq_len=40 head_dim=16 "
                 "mask=causal_bottom_right+sliding_window(left=4,right=0)"},
    .hides_on = "seq_len=40 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            if (!keys.empty())
              see(row, round_down(keys.first(), kTile), keys.first(), keys);
          };
          return variant;
        },
};

}  // namespace attnguard
