#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// A triangle is laid over the new tokens alone, and the cached ones before
// them are hidden. Decoding one token at a time is right.
const Defect kDefectCachedPrefixHidden = {
    .id = "cached-prefix-hidden",
    .summary = "several new rows behind a cache see only each other",
    .cls = DefectClass::kPastDropped,
    .reports = {"hyprstream/hyprstream#1521"},
    .shows_on =
        {"seq_len_q=8 seq_len_kv=24 head_dim=16 mask=causal_bottom_right"},
    .hides_on =
        "seq_len_q=1 seq_len_kv=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            const std::int64_t cached =
                row.place.seq_len_kv - row.place.seq_len_q;
            if (row.place.seq_len_q > 1) drop(0, cached, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
