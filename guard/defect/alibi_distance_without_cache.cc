
#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/engine/row_steps.h"

namespace attnguard {

// Right in a prefill. Behind a cache the distances are those from a token
// far back, and they rise where they should fall.
const Defect kDefectAlibiDistanceWithoutCache = {
    .id = "alibi-distance-without-cache",
    .summary =
        "ALiBi counts the distance from the query's index, without what is "
        "cached",
    .cls = DefectClass::kWrongScaleOrBias,
    .shows_on = {"num_heads=2 seq_len_q=8 seq_len_kv=24 head_dim=16 "
                 "alibi_max_bias=8 mask=causal_bottom_right",
                 "num_heads=2 seq_len_q=1 seq_len_kv=24 head_dim=16 "
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
              add_alibi(row.problem.alibi_slope(row.head), row.place.q_index,
                        keys, scores.data());
          };
          return variant;
        },
};

}  // namespace attnguard
