#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"

namespace attnguard {
// The running sum and the accumulator are set to zero at each tile instead of
// once.
const Defect kDefectEarlierTilesLost = {
    .id = "earlier-tiles-lost",
    .summary = "a row keeps only the tile of 16 keys that its last key lies in",
    .cls = DefectClass::kPastDropped,
    .shows_on = {"seq_len=40 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=16 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow&, KeyRanges& keys) {
            if (!keys.empty()) keys = keys_in_tile(keys, keys.last(), kTile);
          };
          return variant;
        },
};

}  // namespace attnguard
