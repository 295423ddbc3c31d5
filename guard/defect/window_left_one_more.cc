#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// A window of W keys with self is passed on as a radius of W, which is W + 1
// keys.
const Defect kDefectWindowLeftOneMore = {
    .id = "window-left-one-more",
    .summary = "a window reaches one key further back",
    .cls = DefectClass::kWindowOffByOne,
    .reports = {"huggingface/transformers#29623",
                "huggingface/transformers#39408", "microsoft/onnxruntime#25927",
                "ml-explore/mlx-lm#390"},
    .shows_on = {"seq_len=24 head_dim=16 "
                 "mask=causal_bottom_right+sliding_window(left=4,right=0)",
                 "seq_len=24 head_dim=16 mask=sliding_window(left=4,right=2)"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            const MaskTerm* window = find_term(row.problem, "sliding_window");
            if (window == nullptr) return;
            const std::int64_t own = row.place.bottom_right();
            const std::int64_t oldest = own - window->values[0];
            if (window->values[0] >= 0) see(row, oldest - 1, oldest, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
