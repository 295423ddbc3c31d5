#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// One length is read where there is one for each entry. Shorter entries show
// padding, longer ones lose keys.
const Defect kDefectFirstLengthForAll = {
    .id = "first-length-for-all",
    .summary = "every entry has the length of the first",
    .cls = DefectClass::kPaddingOrUnusedSlotLeak,
    .shows_on = {"batch=3 seq_len_q=8 seq_len_kv=21,15,24 head_dim=16"},
    .hides_on = "batch=2 seq_len_q=8 seq_len_kv=24 head_dim=16",
    .make =
        [] {
          AttentionVariant variant;
          variant.place = [](const VariantRow& row, RowPlace& place) {
            place.seq_len_kv = row.problem.len_kv(0);
          };
          return variant;
        },
};

}  // namespace attnguard
