#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// A scale of its own is not stored with the compiled model, or never passed
// on.
const Defect kDefectScaleSettingIgnored = {
    .id = "scale-setting-ignored",
    .summary =
        "the scale is always 1 / sqrt(head_dim_qk), whatever the call says",
    .cls = DefectClass::kWrongScaleOrBias,
    .reports = {"openvinotoolkit/openvino#31365"},
    .shows_on =
        {"seq_len=24 head_dim=16 mask=causal_bottom_right softmax_scale=0.5"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.scale = [](const Problem& problem) {
            return 1 / std::sqrt(static_cast<double>(problem.head_dim_qk));
          };
          return variant;
        },
};

}  // namespace attnguard
