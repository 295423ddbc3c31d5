#include "adapters/plain/builtin_table.h"
#include "guard/engine/attention_variant.h"

namespace attnguard {

// The result of a row is too small by the share of the masked keys, so later
// tokens move it although none of their values reaches it.
const BuiltinEngine kBuiltinMaskAfterSoftmax = {
    .name = "mask_after_softmax",
    .summary =
        "known bad: zeroes masked weights after normalising over all "
        "keys, so rows lose mass to later tokens",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            keys.clear();
            keys.append(0, row.place.seq_len_kv);
          };
          variant.weights = [](const VariantRow& row, const KeyRanges&,
                               std::span<double> weights) {
            KeyRanges visible;
            row.problem.mask.allowed(row.place, visible);
            for (std::size_t j = 0; j < weights.size(); ++j)
              if (!visible.contains(static_cast<std::int64_t>(j)))
                weights[j] = 0;
          };
          return variant_engine({}, {}, variant);
        },
};

}  // namespace attnguard
