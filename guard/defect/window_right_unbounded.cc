#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// Only the left edge of the window is passed on; the right one was expected to
// come with a causal flag that is not set.
const Defect kDefectWindowRightUnbounded = {
    .id = "window-right-unbounded",
    .summary = "a window without a causal term has no right edge",
    .cls = DefectClass::kFutureLeakDirect,
    .reports = {"jax-ml/jax#39576"},
    .shows_on = {"seq_len=24 head_dim=16 mask=sliding_window(left=4,right=0)"},
    .hides_on =
        "seq_len=24 head_dim=16 "
        "mask=causal_bottom_right+sliding_window(left=4,right=0)",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            if (keys.empty() || row.problem.mask.has("causal_bottom_right") ||
                find_term(row.problem, "sliding_window") == nullptr)
              return;
            see(row, keys.last(), row.place.seq_len_kv, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
