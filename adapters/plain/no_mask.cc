#include "adapters/plain/builtin_table.h"
#include "guard/engine/attention_variant.h"

namespace attnguard {

const BuiltinEngine kBuiltinNoMask = {
    .name = "no_mask",
    .summary = "known bad: ignores the mask, every row sees every key",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            keys.clear();
            keys.append(0, row.place.seq_len_kv);
          };
          return variant_engine({}, {}, variant);
        },
};

}  // namespace attnguard
