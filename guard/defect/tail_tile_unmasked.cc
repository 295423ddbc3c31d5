#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"

namespace attnguard {
// Whole tiles are masked in the main loop; the remainder has a loop of its
// own, and no mask in it.
const Defect kDefectTailTileUnmasked = {
    .id = "tail-tile-unmasked",
    .summary =
        "the keys of an incomplete last tile of 32 are visible to every row",
    .cls = DefectClass::kFutureLeakDirect,
    .shows_on = {"seq_len=40 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=64 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            const std::int64_t length = row.place.seq_len_kv;
            see(row, round_down(length, kWideTile), length, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
