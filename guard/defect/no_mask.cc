#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The mask was left to another layer: to a backend whose causal flag was never
// set, to a branch that was not taken.
const Defect kDefectNoMask = {
    .id = "no-mask",
    .summary = "ignores the mask: every row sees every key",
    .cls = DefectClass::kFutureLeakDirect,
    .reports = {"paiml/entrenar#310", "facebookresearch/xformers#103",
                "huggingface/transformers#30652",
                "huggingface/transformers#48769", "keras-team/keras#23038"},
    .shows_on = {"seq_len=24 head_dim=16 mask=causal_bottom_right",
                 "seq_len=24 head_dim=16 mask=causal_top_left",
                 "num_heads=4 num_kv_heads=2 seq_len=24 head_dim=16 "
                 "mask=sliding_window(left=4,right=0)"},
    .hides_on = "seq_len=24 head_dim=16",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            see_all(row, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
