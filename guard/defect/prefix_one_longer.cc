#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {

// The length of the prefix is read as the index of its last key.
const Defect kDefectPrefixOneLonger = {
    .id = "prefix-one-longer",
    .summary = "a prefix-LM row sees one key more than the prefix",
    .cls = DefectClass::kFutureLeakDirect,
    .shows_on = {"seq_len=24 head_dim=16 mask=prefix_lm(prefix=6)"},
    .hides_on = "seq_len=24 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            const MaskTerm* prefix = find_term(row.problem, "prefix_lm");
            if (prefix != nullptr) see(row, 0, prefix->values[0] + 1, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
