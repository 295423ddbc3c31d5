#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The mask's row length is taken from the wrong axis. Square problems do not
// show it.
const Defect kDefectMaskRowStrideOfQueries = {
    .id = "mask-row-stride-of-queries",
    .summary =
        "rows of the mask are addressed with seq_len_q instead of seq_len_kv",
    .cls = DefectClass::kMaskMisread,
    .reports = {"sgl-project/sglang#39287"},
    .shows_on =
        {"seq_len_q=8 seq_len_kv=24 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            const RowPlace& place = row.place;
            KeyRanges of_row;
            keys.clear();
            for (std::int64_t j = 0; j < place.seq_len_kv; ++j) {
              const std::int64_t at = place.q_index * place.seq_len_q + j;
              const std::int64_t from = at / place.seq_len_kv % place.seq_len_q;
              row.problem.mask.allowed(row.problem.row(place.batch, from),
                                       of_row);
              if (of_row.contains(at % place.seq_len_kv)) keys.append(j, j + 1);
            }
          };
          return variant;
        },
};

}  // namespace attnguard
