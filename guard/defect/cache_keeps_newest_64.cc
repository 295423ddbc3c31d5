#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {
namespace {

constexpr std::int64_t kNewest = 64;

}  // namespace

// Layers with full attention share the cache size of layers with a window, or
// the cache is trimmed by the length of its buffer.
const Defect kDefectCacheKeepsNewest64 = {
    .id = "cache-keeps-newest-64",
    .summary = "each row sees its newest 64 keys at most",
    .cls = DefectClass::kPastDropped,
    .reports = {"pytorch/executorch#21635", "ml-explore/mlx-lm#1673"},
    .shows_on = {"seq_len=80 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=64 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow&, KeyRanges& keys) {
            if (!keys.empty())
              see_only(keys.last() + 1 - kNewest, keys.last() + 1, keys);
          };
          return variant;
        },
};

}  // namespace attnguard
