#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The other reading of "causal", the other way round: every row sees keys that
// lie after it.
const Defect kDefectBottomRightForTopLeft = {
    .id = "bottom-right-for-top-left",
    .summary = "the last query is aligned with the last key",
    .cls = DefectClass::kContractAlignment,
    .reports = {"ml-explore/mlx#2835"},
    .shows_on = {"seq_len_q=8 seq_len_kv=24 head_dim=16 mask=causal_top_left"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_top_left",
    .make =
        [] {
          AttentionVariant variant;
          variant.place = [](const VariantRow& row, RowPlace& place) {
            if (row.problem.mask.has("causal_top_left"))
              place.q_index = place.bottom_right();
          };
          return variant;
        },
};

}  // namespace attnguard
