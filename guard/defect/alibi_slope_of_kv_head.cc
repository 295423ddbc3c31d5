
#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/engine/row_steps.h"

namespace attnguard {

// The loop runs over KV heads, and the slope is looked up with its index.
// Without shared keys the two indices are one.
const Defect kDefectAlibiSlopeOfKvHead = {
    .id = "alibi-slope-of-kv-head",
    .summary =
        "heads that share keys share the ALiBi slope of the KV head's index",
    .cls = DefectClass::kWrongScaleOrBias,
    .shows_on = {"num_heads=4 num_kv_heads=2 seq_len=24 head_dim=16 "
                 "alibi_max_bias=8 mask=causal_bottom_right"},
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
            if (row.problem.alibi_max_bias)
              add_alibi(
                  row.problem.alibi_slope(row.problem.kv_head_of(row.head)),
                  row.place.bottom_right(), keys, scores.data());
          };
          return variant;
        },
};

}  // namespace attnguard
