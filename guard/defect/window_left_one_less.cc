#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// A radius of W, which is W + 1 keys with self, meets a buffer of W.
const Defect kDefectWindowLeftOneLess = {
    .id = "window-left-one-less",
    .summary = "a window misses its oldest key",
    .cls = DefectClass::kWindowOffByOne,
    .reports = {"sgl-project/sglang#32087", "huggingface/transformers#37414"},
    .shows_on = {"seq_len=24 head_dim=16 "
                 "mask=causal_bottom_right+sliding_window(left=4,right=0)",
                 "seq_len_q=1 seq_len_kv=24 head_dim=16 "
                 "mask=causal_bottom_right+sliding_window(left=4,right=0)"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            const MaskTerm* window = find_term(row.problem, "sliding_window");
            if (window == nullptr) return;
            const std::int64_t own = row.place.bottom_right();
            const std::int64_t oldest = own - window->values[0];
            if (window->values[0] > 0) drop(oldest, oldest + 1, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
