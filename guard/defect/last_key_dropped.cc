#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// < instead of <= in the mask, or a length that does not count the newest
// token.
const Defect kDefectLastKeyDropped = {
    .id = "last-key-dropped",
    .summary = "each row misses its last key, unless that is its only one",
    .cls = DefectClass::kPastDropped,
    .reports = {"lablup/mlxcel#994"},
    .shows_on = {"seq_len=24 head_dim=16 mask=causal_bottom_right",
                 "seq_len_q=1 seq_len_kv=24 head_dim=16"},
    .hides_on = "seq_len=24 head_dim=16 mask=sliding_window(left=0,right=0)",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow&, KeyRanges& keys) {
            if (keys.count() > 1) drop(keys.last(), keys.last() + 1, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
