#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"

namespace attnguard {
// The number of tiles is seq_len_kv / 32, rounded down.
const Defect kDefectPartialLastTileDropped = {
    .id = "partial-last-tile-dropped",
    .summary =
        "never reads an incomplete last tile of 32 keys behind whole ones",
    .cls = DefectClass::kPastDropped,
    .shows_on = {"seq_len=40 head_dim=16 mask=causal_bottom_right",
                 "seq_len=33 head_dim=16"},
    .hides_on = "seq_len=64 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            const std::int64_t whole =
                round_down(row.place.seq_len_kv, kWideTile);
            if (whole > 0) see_only(0, whole, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
