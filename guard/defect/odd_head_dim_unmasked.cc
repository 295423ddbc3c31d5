#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// What the fast kernel does not take falls back to plain code, and the mask
// was removed before, because the fast one makes its own.
const Defect kDefectOddHeadDimUnmasked = {
    .id = "odd-head-dim-unmasked",
    .summary = "no mask when head_dim_qk is not a multiple of 8",
    .cls = DefectClass::kFutureLeakDirect,
    .reports = {"keras-team/keras#23038", "huggingface/transformers#30652"},
    .shows_on =
        {"seq_len=24 head_dim_qk=20 head_dim_v=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            if (row.problem.head_dim_qk % 8 != 0) see_all(row, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
