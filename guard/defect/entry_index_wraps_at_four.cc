#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The outer stride overflows or is narrowed: the first entries are right, and
// few tests have more.
const Defect kDefectEntryIndexWrapsAtFour = {
    .id = "entry-index-wraps-at-four",
    .summary = "batch entry b reads the keys and values of entry b % 4",
    .cls = DefectClass::kIndexOverflowOob,
    .reports = {"ggml-org/llama.cpp#24912"},
    .shows_on = {"batch=5 seq_len=8 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "batch=4 seq_len=8 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.key_slot = [](const Problem& problem, std::int64_t batch,
                                std::int64_t head) {
            return KvSlot{batch % 4, problem.kv_head_of(head)};
          };
          return variant;
        },
};

}  // namespace attnguard
