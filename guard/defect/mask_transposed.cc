#include <algorithm>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// Rows and columns of the mask change places. Symmetric masks do not show it.
const Defect kDefectMaskTransposed = {
    .id = "mask-transposed",
    .summary = "row i, key j reads the mask of row j, key i",
    .cls = DefectClass::kMaskMisread,
    .reports = {"leejet/stable-diffusion.cpp#1625"},
    .shows_on =
        {"seq_len=24 head_dim=16 mask=causal_bottom_right",
         "seq_len=24 head_dim=16 mask=causal_bottom_right mask_form=boolean"},
    .hides_on = "seq_len=24 head_dim=16 mask=sliding_window(left=4,right=4)",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            const std::int64_t own = row.place.q_index;
            const std::int64_t rows = row.place.seq_len_q;
            KeyRanges of_row;
            keys.clear();
            for (std::int64_t j = 0; j < std::min(rows, row.place.seq_len_kv);
                 ++j) {
              row.problem.mask.allowed(row.problem.row(row.place.batch, j),
                                       of_row);
              if (of_row.contains(own)) keys.append(j, j + 1);
            }
          };
          return variant;
        },
};

}  // namespace attnguard
