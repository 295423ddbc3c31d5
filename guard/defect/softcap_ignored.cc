
#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/engine/row_steps.h"

namespace attnguard {

// The parameter is accepted and never passed on. Ordinary scores hardly
// reach a cap of 50: attention is too sharp only where it is sharp already.
const Defect kDefectSoftcapIgnored = {
    .id = "softcap-ignored",
    .summary = "scores are not capped",
    .cls = DefectClass::kWrongScaleOrBias,
    .shows_on = {"seq_len=24 head_dim=16 softcap=2 mask=causal_bottom_right",
                 "seq_len_q=1 seq_len_kv=24 head_dim=16 "
                 "mask=causal_bottom_right softcap=2",
                 "seq_len=24 head_dim=16 softcap=50 mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.bend = [](const VariantRow& row, const KeyRanges& keys,
                            std::span<double> scores) {
            if (row.problem.alibi_max_bias)
              add_alibi(row.problem.alibi_slope(row.head),
                        row.place.bottom_right(), keys, scores.data());
          };
          return variant;
        },
};

}  // namespace attnguard
