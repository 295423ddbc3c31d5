#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"

namespace attnguard {
// The bound of the inner loop is off by one, in whole tiles only. All rows sum
// to 1 and the missing share is 1/32.
const Defect kDefectLastKeyOfEachTileDropped = {
    .id = "last-key-of-each-tile-dropped",
    .summary = "the last key of every whole tile of 32 has no weight",
    .cls = DefectClass::kPastDropped,
    .shows_on = {"seq_len=70 head_dim=16 mask=causal_bottom_right",
                 "seq_len=70 head_dim=16"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            for (std::int64_t end = kWideTile; end <= row.place.seq_len_kv;
                 end += kWideTile)
              drop(end - 1, end, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
