#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// In a batch of unlike lengths the offset between queries and keys is each
// entry's own.
const Defect kDefectAlignmentOfLongestEntry = {
    .id = "alignment-of-longest-entry",
    .summary = "every entry is aligned with the lengths of the longest",
    .cls = DefectClass::kContractAlignment,
    .shows_on = {"batch=2 seq_len_q=8,3 seq_len_kv=24,15 head_dim=16 "
                 "mask=causal_bottom_right",
                 "batch=2 seq_len_q=8,3 seq_len_kv=24,15 head_dim=16 "
                 "packed=true mask=causal_bottom_right"},
    .hides_on =
        "batch=2 seq_len_q=8 seq_len_kv=24 head_dim=16 "
        "mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            RowPlace longest = row.place;
            longest.seq_len_q = row.problem.max_len_q();
            longest.seq_len_kv = row.problem.max_len_kv();
            row.problem.mask.allowed(longest, keys);
            see_only(0, row.place.seq_len_kv, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
