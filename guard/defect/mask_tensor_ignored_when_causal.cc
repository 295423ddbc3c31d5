#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The layer's mask type says causal, and a block-diagonal mask that is
// handed over as well is dropped: packed documents see each other.
const Defect kDefectMaskTensorIgnoredWhenCausal = {
    .id = "mask-tensor-ignored-when-causal",
    .summary = "a kernel in causal mode does not look at the mask tensor",
    .cls = DefectClass::kCrossSequence,
    .reports = {"NVIDIA/Megatron-LM#2357"},
    .shows_on =
        {"seq_len=24 head_dim=16 "
         "mask=documents(lengths=10:14)+causal_bottom_right mask_form=boolean"},
    .hides_on =
        "seq_len=24 head_dim=16 "
        "mask=documents(lengths=10:14)+causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            if (row.problem.mask_form == MaskForm::kImplied) return;
            if (!row.problem.mask.has("causal_bottom_right")) return;
            see_all(row, keys);
            see_only(0, row.place.bottom_right() + 1, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
