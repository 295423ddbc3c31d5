#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The loop starts at 1, or the first token of the cache is overwritten. Models
// lean on that token: quality falls and nothing looks wrong.
const Defect kDefectFirstKeyDropped = {
    .id = "first-key-dropped",
    .summary = "each row misses its first key, unless that is its only one",
    .cls = DefectClass::kPastDropped,
    .shows_on = {"seq_len=24 head_dim=16 mask=causal_bottom_right",
                 "seq_len=24 head_dim=16"},
    .hides_on = "seq_len=24 head_dim=16 mask=sliding_window(left=0,right=0)",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow&, KeyRanges& keys) {
            if (keys.count() > 1) drop(keys.first(), keys.first() + 1, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
