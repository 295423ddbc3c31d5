#include <algorithm>

#include "adapters/plain/builtin_table.h"
#include "guard/engine/attention_variant.h"

namespace attnguard {

const BuiltinEngine kBuiltinCausalOffByOne = {
    .name = "causal_off_by_one",
    .summary =
        "known bad: each row sees one key past its last, where there "
        "is one",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            if (keys.empty()) return;
            const std::int64_t next = keys.last() + 1;
            keys.append(next, std::min(next + 1, row.place.seq_len_kv));
          };
          return variant_engine({}, {}, variant);
        },
};

}  // namespace attnguard
