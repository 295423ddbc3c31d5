#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// One side passes the length, the other reads the index of the last key.
const Defect kDefectLengthMinusOneConvention = {
    .id = "length-minus-one-convention",
    .summary = "every entry has one key less",
    .cls = DefectClass::kMaskMisread,
    .reports = {"microsoft/onnxruntime#27885"},
    .shows_on = {"seq_len_q=8 seq_len_kv=24 head_dim=16"},
    .hides_on = "seq_len_q=8 seq_len_kv=1 head_dim=16",
    .make =
        [] {
          AttentionVariant variant;
          variant.place = [](const VariantRow&, RowPlace& place) {
            if (place.seq_len_kv > 1) --place.seq_len_kv;
          };
          return variant;
        },
};

}  // namespace attnguard
