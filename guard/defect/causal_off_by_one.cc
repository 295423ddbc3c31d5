#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The triangle starts one diagonal too far, or < is <= in the bound of the key
// loop.
const Defect kDefectCausalOffByOne = {
    .id = "causal-off-by-one",
    .summary = "each row sees one key past its last",
    .cls = DefectClass::kFutureLeakDirect,
    .reports = {"RVC-Boss/GPT-SoVITS#965"},
    .shows_on = {"seq_len=24 head_dim=16 mask=causal_bottom_right",
                 "seq_len=24 head_dim=16 mask=prefix_lm(prefix=6)"},
    .hides_on =
        "seq_len_q=1 seq_len_kv=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            if (!keys.empty()) see(row, keys.last() + 1, keys.last() + 2, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
