#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The position is counted from the start of the step, without what is cached.
// Under a causal mask the query sees key 0 and nothing else.
const Defect kDefectDecodeAlignedTopLeft = {
    .id = "decode-aligned-top-left",
    .summary = "a single query is taken for position 0",
    .cls = DefectClass::kPrefillNeDecode,
    .reports = {"thu-ml/SageAttention#372", "Blaizzy/mlx-vlm#1983",
                "huggingface/transformers#43082"},
    .shows_on =
        {"seq_len_q=1 seq_len_kv=24 head_dim=16 mask=causal_bottom_right"},
    .hides_on =
        "seq_len_q=8 seq_len_kv=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.place = [](const VariantRow&, RowPlace& place) {
            if (place.seq_len_q == 1) place.seq_len_q = place.seq_len_kv;
          };
          return variant;
        },
};

}  // namespace attnguard
