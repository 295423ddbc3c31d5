#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The batch offset into the mask is 0. Entries of the same length do not show
// it.
const Defect kDefectFirstMaskForAllEntries = {
    .id = "first-mask-for-all-entries",
    .summary = "every batch entry is masked like the first",
    .cls = DefectClass::kMaskMisread,
    .reports = {"pytorch/pytorch#184180"},
    .shows_on =
        {"batch=2 seq_len_q=8 seq_len_kv=21,24 head_dim=16 "
         "mask=causal_bottom_right",
         "batch=2 seq_len=24 head_dim=16 mask=left_padding_keys(pad=0:5) "
         "mask_form=additive"},
    .hides_on =
        "batch=2 seq_len_q=8 seq_len_kv=24 head_dim=16 "
        "mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            const RowPlace first = row.problem.row(0, row.place.q_index);
            row.problem.mask.allowed(first, keys);
            see_only(0, row.place.seq_len_kv, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
