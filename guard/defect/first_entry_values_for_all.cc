#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// K and V have strides of their own, and one of them is wrong. Weights, row
// sums and visibility are all as they should be.
const Defect kDefectFirstEntryValuesForAll = {
    .id = "first-entry-values-for-all",
    .summary = "keys are right, values are those of the first batch entry",
    .cls = DefectClass::kCrossSequence,
    .shows_on = {"batch=2 seq_len=24 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.value_slot = [](const Problem& problem, std::int64_t,
                                  std::int64_t head) {
            return KvSlot{0, problem.kv_head_of(head)};
          };
          return variant;
        },
};

}  // namespace attnguard
