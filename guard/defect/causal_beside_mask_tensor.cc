#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// Causality is the default of the call, and a mask does not switch it off.
const Defect kDefectCausalBesideMaskTensor = {
    .id = "causal-beside-mask-tensor",
    .summary = "a causal mask is applied on top of a given mask",
    .cls = DefectClass::kPastDropped,
    .shows_on = {"seq_len=24 head_dim=16 mask=sliding_window(left=4,right=2) "
                 "mask_form=boolean",
                 "seq_len=24 head_dim=16 mask_form=additive"},
    .hides_on = "seq_len=24 head_dim=16 mask=sliding_window(left=4,right=2)",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            if (row.problem.mask_form == MaskForm::kImplied) return;
            see_only(0, row.place.bottom_right() + 1, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
