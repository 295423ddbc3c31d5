#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The call for one new token leaves the window out: what is older was expected
// to have left the cache.
const Defect kDefectWindowIgnoredInDecode = {
    .id = "window-ignored-in-decode",
    .summary = "a single query sees every older key, window or not",
    .cls = DefectClass::kWindowIgnored,
    .reports = {"EricLBuehler/mistral.rs#2094", "rajveer43/VeloxQuant-MLX#463"},
    .shows_on = {"seq_len_q=1 seq_len_kv=24 head_dim=16 "
                 "mask=causal_bottom_right+sliding_window(left=4,right=0)"},
    .hides_on =
        "seq_len=24 head_dim=16 "
        "mask=causal_bottom_right+sliding_window(left=4,right=0)",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            if (row.place.seq_len_q == 1 && !keys.empty())
              see(row, 0, keys.last(), keys);
          };
          return variant;
        },
};

}  // namespace attnguard
