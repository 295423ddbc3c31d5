#include <algorithm>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The positional channels come in a second product, which one path leaves
// out.
const Defect kDefectMlaPositionalChannelsDropped = {
    .id = "mla-positional-channels-dropped",
    .summary =
        "where the value lies in the key, scores are over the value's channels "
        "alone",
    .cls = DefectClass::kWrongHeadOrDim,
    .shows_on = {"num_heads=4 num_kv_heads=1 seq_len=24 head_dim_qk=40 "
                 "head_dim_v=16 value_in_key=true mask=causal_bottom_right"},
    .hides_on =
        "num_heads=4 num_kv_heads=1 seq_len=24 head_dim_qk=40 head_dim_v=16 "
        "mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.query = [](const VariantRow& row, std::span<double> query) {
            if (row.problem.value_in_key)
              std::fill(query.begin() + row.problem.head_dim_v, query.end(),
                        0.0);
          };
          return variant;
        },
};

}  // namespace attnguard
