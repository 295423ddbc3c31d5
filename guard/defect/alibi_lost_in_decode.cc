
#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/engine/row_steps.h"

namespace attnguard {

// Another kernel, another list of parameters.
const Defect kDefectAlibiLostInDecode = {
    .id = "alibi-lost-in-decode",
    .summary = "a single query gets no ALiBi",
    .cls = DefectClass::kPrefillNeDecode,
    .shows_on = {"num_heads=2 seq_len_q=1 seq_len_kv=24 head_dim=16 "
                 "alibi_max_bias=8 mask=causal_bottom_right"},
    .hides_on =
        "num_heads=4 seq_len=24 head_dim=16 alibi_max_bias=8 "
        "mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.bend = [](const VariantRow& row, const KeyRanges& keys,
                            std::span<double> scores) {
            Problem problem = row.problem;
            if (row.place.seq_len_q == 1) problem.alibi_max_bias.reset();
            bend_scores(problem, row.head, row.place, keys, scores.data());
          };
          return variant;
        },
};

}  // namespace attnguard
