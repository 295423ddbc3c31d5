
#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/engine/row_steps.h"

namespace attnguard {

// The decode kernel has the cap, the one that holds whole score matrices has
// not.
const Defect kDefectSoftcapIgnoredInPrefill = {
    .id = "softcap-ignored-in-prefill",
    .summary = "scores of more than one query are not capped",
    .cls = DefectClass::kPrefillNeDecode,
    .reports = {"kekzl/imp#688"},
    .shows_on = {"seq_len=24 head_dim=16 softcap=2 mask=causal_bottom_right"},
    .hides_on =
        "seq_len_q=1 seq_len_kv=24 head_dim=16 mask=causal_bottom_right "
        "softcap=2",
    .make =
        [] {
          AttentionVariant variant;
          variant.bend = [](const VariantRow& row, const KeyRanges& keys,
                            std::span<double> scores) {
            Problem problem = row.problem;
            if (row.place.seq_len_q > 1) problem.softcap.reset();
            bend_scores(problem, row.head, row.place, keys, scores.data());
          };
          return variant;
        },
};

}  // namespace attnguard
