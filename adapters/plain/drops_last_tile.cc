#include "adapters/plain/builtin_table.h"
#include "guard/engine/attention_variant.h"

namespace attnguard {
namespace {

constexpr std::int64_t kTile = 32;

}  // namespace

const BuiltinEngine kBuiltinDropsLastTile = {
    .name = "drops_last_tile",
    .summary =
        "known bad: never reads the keys of an incomplete last tile "
        "of 32, when there are whole ones before it",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            if (row.place.seq_len_kv <= kTile) return;
            KeyRanges whole_tiles, kept;
            whole_tiles.append(0, row.place.seq_len_kv / kTile * kTile);
            intersect(keys, whole_tiles, kept);
            keys = kept;
          };
          return variant_engine({}, {}, variant);
        },
};

}  // namespace attnguard
