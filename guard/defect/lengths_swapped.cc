#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// Two lengths of the same type, passed in the wrong order. Square problems do
// not show it.
const Defect kDefectLengthsSwapped = {
    .id = "lengths-swapped",
    .summary = "the mask is made for seq_len_q keys and seq_len_kv queries",
    .cls = DefectClass::kMaskMisread,
    .shows_on =
        {"seq_len_q=8 seq_len_kv=24 head_dim=16",
         "seq_len_q=8 seq_len_kv=24 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.place = [](const VariantRow& row, RowPlace& place) {
            place.seq_len_q = row.place.seq_len_kv;
            place.seq_len_kv = row.place.seq_len_q;
          };
          return variant;
        },
};

}  // namespace attnguard
