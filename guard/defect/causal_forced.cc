#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The attribute that turns causality off is never read. Nothing leaks: an
// encoder simply loses half of its context.
const Defect kDefectCausalForced = {
    .id = "causal-forced",
    .summary = "applies a causal mask where every key is allowed",
    .cls = DefectClass::kPastDropped,
    .reports = {"openvinotoolkit/openvino#37653"},
    .shows_on = {"seq_len=24 head_dim=16"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            if (row.problem.mask.has("full"))
              see_only(0, row.place.bottom_right() + 1, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
