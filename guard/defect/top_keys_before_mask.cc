#include <algorithm>
#include <functional>
#include <vector>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {
namespace {

constexpr std::size_t kTopKeys = 8;

KeyRanges best_visible_keys(const VariantRow& row,
                            std::span<const double> scores) {
  if (scores.empty()) return {};
  std::vector<double> sorted(scores.begin(), scores.end());
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  const double limit = sorted[std::min(kTopKeys, sorted.size()) - 1];
  KeyRanges best;
  for (std::size_t j = 0; j < scores.size(); ++j)
    if (scores[j] >= limit)
      best.append(static_cast<std::int64_t>(j),
                  static_cast<std::int64_t>(j) + 1);
  KeyRanges kept;
  intersect(best, visible_keys(row), kept);
  return kept;
}

}  // namespace

// A sparse selection looks at scores that are not masked yet. Strong later
// keys take places in it, and what an earlier row keeps depends on them.
const Defect kDefectTopKeysBeforeMask = {
    .id = "top-keys-before-mask",
    .summary = "keeps the 8 best keys of all, then masks",
    .cls = DefectClass::kFutureLeakGlobalStat,
    .reports = {"huggingface/transformers#48363", "ohdearquant/lattice#6"},
    .shows_on = {"seq_len=24 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=8 head_dim=16 mask=causal_bottom_right",
    .make =
        [] {
          AttentionVariant variant;
          variant.allowed = [](const VariantRow& row, KeyRanges& keys) {
            see_all(row, keys);
          };
          variant.row_softmax = [](const VariantRow& row, const KeyRanges& keys,
                                   std::span<double> scores) {
            const KeyRanges kept = best_visible_keys(row, scores);
            softmax_row(kept, scores.data());
            for_each_key(keys, scores, [&](std::int64_t j, double& p) {
              if (!kept.contains(j)) p = 0;
            });
          };
          return variant;
        },
};

}  // namespace attnguard
