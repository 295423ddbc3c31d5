#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// Slots are handed out twice or looked up by the wrong index, and a request
// answers with another one's text.
const Defect kDefectNextEntryKeys = {
    .id = "next-entry-keys",
    .summary = "each batch entry reads the keys and values of the next one",
    .cls = DefectClass::kCrossSequence,
    .reports = {"ggml-org/llama.cpp#28286", "sgl-project/sglang-omni#1704"},
    .shows_on =
        {"batch=3 num_heads=2 seq_len=24 head_dim=16 mask=causal_bottom_right",
         "batch=3 seq_len_q=8 seq_len_kv=40 head_dim=16 block_size=16 "
         "mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.key_slot = [](const Problem& problem, std::int64_t batch,
                                std::int64_t head) {
            return KvSlot{(batch + 1) % problem.batch,
                          problem.kv_head_of(head)};
          };
          return variant;
        },
};

}  // namespace attnguard
