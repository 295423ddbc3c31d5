#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The batch stride is 0, or it wraps to 0: right for the first entry, so right
// in every test with one.
const Defect kDefectFirstEntryKeysForAll = {
    .id = "first-entry-keys-for-all",
    .summary = "every batch entry reads the keys and values of the first",
    .cls = DefectClass::kCrossSequence,
    .reports = {"Dao-AILab/flash-attention#772"},
    .shows_on = {"batch=2 seq_len=24 head_dim=16 mask=causal_bottom_right",
                 "batch=2 seq_len=24,15 head_dim=16 packed=true "
                 "mask=causal_bottom_right",
                 "batch=2 seq_len_q=8 seq_len_kv=40 head_dim=16 block_size=16 "
                 "mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.key_slot = [](const Problem& problem, std::int64_t,
                                std::int64_t head) {
            return KvSlot{0, problem.kv_head_of(head)};
          };
          return variant;
        },
};

}  // namespace attnguard
