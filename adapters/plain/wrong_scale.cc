#include "adapters/plain/builtin_table.h"
#include "guard/engine/attention_variant.h"

namespace attnguard {

const BuiltinEngine kBuiltinWrongScale = {
    .name = "wrong_scale",
    .summary = "known bad: forgets softmax_scale, scores are q . k",
    .make =
        [] {
          AttentionVariant variant;
          variant.scale = [](const Problem&) { return 1.0; };
          return variant_engine({}, {}, variant);
        },
};

}  // namespace attnguard
