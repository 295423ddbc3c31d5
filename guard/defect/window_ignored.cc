#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// A fast path returns before the window is looked at, or two masks share one
// name and the layer reads the full one.
const Defect kDefectWindowIgnored = {
    .id = "window-ignored",
    .summary = "a window has no left edge: every older key is visible",
    .cls = DefectClass::kWindowIgnored,
    .reports = {"keras-team/keras-hub#2186", "ggml-org/llama.cpp#25189",
                "huggingface/transformers#32522"},
    .shows_on = {"seq_len=24 head_dim=16 "
                 "mask=causal_bottom_right+sliding_window(left=4,right=0)",
                 "seq_len_q=1 seq_len_kv=24 head_dim=16 "
                 "mask=causal_bottom_right+sliding_window(left=4,right=0)"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            if (find_term(row.problem, "sliding_window") != nullptr &&
                !keys.empty())
              see(row, 0, keys.last(), keys);
          };
          return variant;
        },
};

}  // namespace attnguard
