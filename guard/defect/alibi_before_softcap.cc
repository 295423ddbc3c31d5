
#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/engine/row_steps.h"

namespace attnguard {

// The bias of far keys saturates at the cap instead of growing with the
// distance.
const Defect kDefectAlibiBeforeSoftcap = {
    .id = "alibi-before-softcap",
    .summary = "ALiBi is added before the soft-cap and capped with the score",
    .cls = DefectClass::kWrongScaleOrBias,
    .shows_on = {"num_heads=4 seq_len=24 head_dim=16 alibi_max_bias=8 "
                 "mask=causal_bottom_right softcap=2"},
    .hides_on =
        "num_heads=4 seq_len=24 head_dim=16 alibi_max_bias=8 "
        "mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.bend = [](const VariantRow& row, const KeyRanges& keys,
                            std::span<double> scores) {
            if (row.problem.alibi_max_bias)
              add_alibi(row.problem.alibi_slope(row.head),
                        row.place.bottom_right(), keys, scores.data());
            if (row.problem.softcap)
              cap_scores(*row.problem.softcap, keys, scores.data());
          };
          return variant;
        },
};

}  // namespace attnguard
