#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The buffer of the decode step holds as many keys as the radius says, the
// mask of the prefill one more.
const Defect kDefectDecodeWindowOneShort = {
    .id = "decode-window-one-short",
    .summary = "a single query misses the oldest key of its window",
    .cls = DefectClass::kPrefillNeDecode,
    .reports = {"sgl-project/sglang#32087"},
    .shows_on = {"seq_len_q=1 seq_len_kv=24 head_dim=16 "
                 "mask=causal_bottom_right+sliding_window(left=4,right=0)"},
    .hides_on =
        "seq_len=24 head_dim=16 "
        "mask=causal_bottom_right+sliding_window(left=4,right=0)",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            const MaskTerm* window = find_term(row.problem, "sliding_window");
            if (window == nullptr || window->values[0] < 1 ||
                row.place.seq_len_q != 1)
              return;
            const std::int64_t oldest =
                row.place.bottom_right() - window->values[0];
            drop(oldest, oldest + 1, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
