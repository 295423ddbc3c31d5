#include <algorithm>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The limit is computed once for each group of four query rows, for the
// group's last row. The other three keep up to three keys that come after
// them. The kernel for 32-bit types is another one, and right.
const Defect kDefectCausalLimitOfRowGroup = {
    .id = "causal-limit-of-row-group",
    .summary =
        "in 16-bit types four rows share the causal limit of the last of them",
    .cls = DefectClass::kFutureLeakDirect,
    .reports = {"pytorch/pytorch#195910"},
    .shows_on = {"seq_len=24 head_dim=16 dtype=bf16 mask=causal_bottom_right",
                 "seq_len=24 head_dim=16 dtype=fp16 mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.place = [](const VariantRow& row, RowPlace& place) {
            if (dtype_size(row.problem.dtype) == 2)
              place.q_index = std::min(place.q_index | 3, place.seq_len_q - 1);
          };
          return variant;
        },
};

}  // namespace attnguard
