
#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/engine/row_steps.h"

namespace attnguard {

// The slope is stored negative on one side of the call and negated again on
// the other.
const Defect kDefectAlibiSignFlipped = {
    .id = "alibi-sign-flipped",
    .summary = "ALiBi is subtracted: far keys are favoured",
    .cls = DefectClass::kWrongScaleOrBias,
    .shows_on = {"num_heads=4 seq_len=24 head_dim=16 alibi_max_bias=8 "
                 "mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.bend = [](const VariantRow& row, const KeyRanges& keys,
                            std::span<double> scores) {
            if (row.problem.softcap)
              cap_scores(*row.problem.softcap, keys, scores.data());
            if (row.problem.alibi_max_bias)
              add_alibi(-row.problem.alibi_slope(row.head),
                        row.place.bottom_right(), keys, scores.data());
          };
          return variant;
        },
};

}  // namespace attnguard
