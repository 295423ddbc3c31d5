#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The new token is written to the cache after the attention that should read
// it, or the length is taken before it is counted. Prefill is right.
const Defect kDefectDecodeMissesOwnToken = {
    .id = "decode-misses-own-token",
    .summary = "a single query does not see the last key",
    .cls = DefectClass::kPrefillNeDecode,
    .shows_on = {"batch=2 num_heads=2 seq_len_q=1 seq_len_kv=24 head_dim=16 "
                 "mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            const std::int64_t own = row.place.seq_len_kv - 1;
            if (row.place.seq_len_q == 1 && keys.count() > 1)
              drop(own, own + 1, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
