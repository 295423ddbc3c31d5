#include "adapters/plain/builtin_table.h"
#include "guard/engine/attention_variant.h"

namespace attnguard {

const BuiltinEngine kBuiltinWrongKvHead = {
    .name = "wrong_kv_head",
    .summary =
        "known bad: head h reads KV head h % num_kv_heads instead of "
        "h / group_size",
    .make =
        [] {
          AttentionVariant variant;
          variant.key_slot = [](const Problem& problem, std::int64_t batch,
                                std::int64_t head) {
            return KvSlot{batch, head % problem.num_kv_heads};
          };
          return variant_engine({}, {}, variant);
        },
};

}  // namespace attnguard
