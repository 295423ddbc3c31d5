
#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/engine/row_steps.h"

namespace attnguard {

// Slopes that never reach the kernel. Far keys count as much as near ones.
const Defect kDefectAlibiIgnored = {
    .id = "alibi-ignored",
    .summary = "no ALiBi is added",
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
          };
          return variant;
        },
};

}  // namespace attnguard
