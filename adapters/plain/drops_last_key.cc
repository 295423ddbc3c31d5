#include "adapters/plain/builtin_table.h"
#include "guard/engine/attention_variant.h"

namespace attnguard {

const BuiltinEngine kBuiltinDropsLastKey = {
    .name = "drops_last_key",
    .summary =
        "known bad: each row misses its last key, unless it is the "
        "only one",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow&, KeyRanges& keys) {
            if (keys.count() < 2) return;
            KeyRanges before_last, kept;
            before_last.append(0, keys.last());
            intersect(keys, before_last, kept);
            keys = kept;
          };
          return variant_engine({}, {}, variant);
        },
};

}  // namespace attnguard
