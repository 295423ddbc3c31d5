#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The length counts the token that is being written, or a bound is inclusive
// on one side of the call.
const Defect kDefectLengthOneTooLong = {
    .id = "length-one-too-long",
    .summary = "every entry has one key more, where the tensor has room",
    .cls = DefectClass::kPaddingOrUnusedSlotLeak,
    .shows_on = {"batch=3 seq_len_q=8 seq_len_kv=24,15,21 head_dim=16"},
    .hides_on = "batch=2 seq_len_q=8 seq_len_kv=24 head_dim=16",
    .make =
        [] {
          AttentionVariant variant;
          variant.place = [](const VariantRow&, RowPlace& place) {
            ++place.seq_len_kv;
            ++place.seq_len_q;
          };
          return variant;
        },
};

}  // namespace attnguard
