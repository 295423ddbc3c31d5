#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The decode kernel is another one, and the factor was folded into the prefill
// kernel's query load.
const Defect kDefectDecodeWithoutScale = {
    .id = "decode-without-scale",
    .summary = "a single query is not scaled",
    .cls = DefectClass::kPrefillNeDecode,
    .shows_on =
        {"seq_len_q=1 seq_len_kv=24 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.scale = [](const Problem& problem) {
            return problem.max_len_q() == 1 ? 1.0 : problem.scale();
          };
          return variant;
        },
};

}  // namespace attnguard
