#include "adapters/plain/builtin_table.h"
#include "guard/engine/attention_variant.h"

namespace attnguard {

const BuiltinEngine kBuiltinStaleRow = {
    .name = "stale_row",
    .summary =
        "known bad: never writes the last row of each head, which "
        "keeps what the memory held",
    .make =
        [] {
          AttentionVariant variant;
          variant.keeps = [](const VariantRow& row) {
            return row.place.q_index + 1 < row.place.seq_len_q;
          };
          return variant_engine({}, {}, variant);
        },
};

}  // namespace attnguard
