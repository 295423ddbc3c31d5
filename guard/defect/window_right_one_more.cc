#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The same slip as on the left edge, on the side where it is a leak.
const Defect kDefectWindowRightOneMore = {
    .id = "window-right-one-more",
    .summary = "a window reaches one key further ahead",
    .cls = DefectClass::kWindowOffByOne,
    .shows_on = {"seq_len=24 head_dim=16 mask=sliding_window(left=4,right=2)",
                 "seq_len=24 head_dim=16 mask=sliding_window(left=-1,right=0)"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            const MaskTerm* window = find_term(row.problem, "sliding_window");
            if (window == nullptr) return;
            const std::int64_t own = row.place.bottom_right();
            const std::int64_t newest = own + window->values[1];
            if (window->values[1] >= 0) see(row, newest + 1, newest + 2, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
