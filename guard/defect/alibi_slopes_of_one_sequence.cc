#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/engine/row_steps.h"

namespace attnguard {

// The paper's rule for a number of heads that is no power of two takes every
// other slope of a finer sequence for the heads that are left.
const Defect kDefectAlibiSlopesOfOneSequence = {
    .id = "alibi-slopes-of-one-sequence",
    .summary =
        "ALiBi slopes are one geometric sequence, for any number of heads",
    .cls = DefectClass::kWrongScaleOrBias,
    .reports = {"ml-explore/mlx#3071"},
    .shows_on = {"num_heads=6 seq_len=24 head_dim=16 alibi_max_bias=8 "
                 "mask=causal_bottom_right",
                 "num_heads=3 seq_len=24 head_dim=16 alibi_max_bias=8 "
                 "mask=causal_bottom_right"},
    .hides_on =
        "num_heads=4 seq_len=24 head_dim=16 alibi_max_bias=8 "
        "mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.bend = [](const VariantRow& row, const KeyRanges& keys,
                            std::span<double> scores) {
            if (row.problem.softcap)
              cap_scores(*row.problem.softcap, keys, scores.data());
            if (!row.problem.alibi_max_bias) return;
            const double step = *row.problem.alibi_max_bias /
                                static_cast<double>(row.problem.num_heads);
            add_alibi(std::exp2(-step * static_cast<double>(row.head + 1)),
                      row.place.bottom_right(), keys, scores.data());
          };
          return variant;
        },
};

}  // namespace attnguard
