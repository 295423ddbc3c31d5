#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// Two conventions for the same byte. Rows see exactly what they must not; a
// row that may see everything sees nothing.
const Defect kDefectMaskTensorPolarityOfBoolean = {
    .id = "mask-tensor-polarity-of-boolean",
    .summary =
        "a mask where 1 means masked is read as one where 1 means allowed",
    .cls = DefectClass::kMaskMisread,
    .shows_on =
        {"seq_len=24 head_dim=16 mask=causal_bottom_right mask_form=inverted"},
    .hides_on =
        "seq_len=24 head_dim=16 mask=causal_bottom_right mask_form=boolean",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            if (row.problem.mask_form != MaskForm::kInverted) return;
            KeyRanges masked;
            see_all(row, masked);
            for (const KeyRange& range : keys.ranges())
              drop(range.begin, range.end, masked);
            keys = masked;
          };
          return variant;
        },
};

}  // namespace attnguard
