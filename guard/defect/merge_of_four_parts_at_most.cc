#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"

namespace attnguard {
// The merge has room for a fixed number of parts. More of them, at long
// contexts, are never added up.
const Defect kDefectMergeOfFourPartsAtMost = {
    .id = "merge-of-four-parts-at-most",
    .summary = "of the parts of 16 keys only the first four are merged",
    .cls = DefectClass::kRowSumOrMerge,
    .reports = {"ggml-org/llama.cpp#13852"},
    .shows_on = {"seq_len_q=1 seq_len_kv=80 head_dim=16"},
    .hides_on = "seq_len_q=1 seq_len_kv=64 head_dim=16",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow&, KeyRanges& keys) {
            see_only(0, 4 * kTile, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
