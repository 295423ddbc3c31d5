#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The path for new sequences has no window, although the one that continues a
// cache has it.
const Defect kDefectWindowIgnoredInPrefill = {
    .id = "window-ignored-in-prefill",
    .summary = "without a cache a window has no left edge",
    .cls = DefectClass::kWindowIgnored,
    .reports = {"apache/tvm#18630"},
    .shows_on = {"seq_len=24 head_dim=16 "
                 "mask=causal_bottom_right+sliding_window(left=4,right=0)"},
    .hides_on =
        "seq_len_q=8 seq_len_kv=24 head_dim=16 "
        "mask=causal_bottom_right+sliding_window(left=4,right=0)",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            if (row.place.seq_len_q == row.place.seq_len_kv && !keys.empty())
              see(row, 0, keys.last(), keys);
          };
          return variant;
        },
};

}  // namespace attnguard
