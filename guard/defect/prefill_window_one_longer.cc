#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The mask allows a window and the query's own key, the rotating cache of
// the decode step keeps a window with it.
const Defect kDefectPrefillWindowOneLonger = {
    .id = "prefill-window-one-longer",
    .summary =
        "several queries see one key more than their window, a single one does "
        "not",
    .cls = DefectClass::kPrefillNeDecode,
    .reports = {"ml-explore/mlx-lm#390"},
    .shows_on = {"seq_len=24 head_dim=16 "
                 "mask=causal_bottom_right+sliding_window(left=4,right=0)"},
    .hides_on =
        "seq_len_q=1 seq_len_kv=24 head_dim=16 "
        "mask=causal_bottom_right+sliding_window(left=4,right=0)",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            const MaskTerm* window = find_term(row.problem, "sliding_window");
            if (window == nullptr || window->values[0] < 0 ||
                row.place.seq_len_q < 2)
              return;
            const std::int64_t next =
                row.place.bottom_right() - window->values[0] - 1;
            see(row, next, next + 1, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
