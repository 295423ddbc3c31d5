#include <algorithm>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// A row offset that is off by one. Under a causal mask nothing leaks: each
// row misses its own key.
const Defect kDefectMaskTensorRowLate = {
    .id = "mask-tensor-row-late",
    .summary = "row i of a mask tensor is taken for query i + 1",
    .cls = DefectClass::kMaskMisread,
    .shows_on =
        {"seq_len=24 head_dim=16 mask=causal_bottom_right mask_form=boolean",
         "seq_len=24 head_dim=16 mask=sliding_window(left=4,right=2) "
         "mask_form=additive"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            if (row.problem.mask_form == MaskForm::kImplied) return;
            RowPlace before = row.place;
            before.q_index = std::max<std::int64_t>(before.q_index - 1, 0);
            row.problem.mask.allowed(before, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
