#include <algorithm>
#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/defect/sizes.h"

namespace attnguard {
namespace {

void store_block(std::span<double> block) {
  double largest = 0;
  for (double x : block) largest = std::max(largest, std::abs(x));
  round_to_step(largest / kInt8Steps, block);
}

// A row's own largest element is smaller than the block's.
Numerics coarse_keys(const Problem& problem) {
  Numerics numerics = default_numerics(problem);
  numerics.key_error = 4 * 0.5 / kInt8Steps;
  return numerics;
}

}  // namespace

// A block of positions shares the exponent of its largest element. A key that
// comes later in the block, and that an earlier row must not see, decides how
// the earlier ones are rounded.
const Defect kDefectKeyScalePerBlock = {
    .id = "key-scale-per-block",
    .summary =
        "keys of 32 positions share one scale, those after the row included",
    .cls = DefectClass::kFutureLeakGlobalStat,
    .reports = {"NVIDIA/TransformerEngine#3248"},
    .shows_on = {"seq_len=40 head_dim=16 mask=causal_bottom_right"},
    .make =
        [] {
          AttentionVariant variant;
          variant.stored = [](const AttentionCall& call, TensorRole role,
                              const KvSlot&, std::span<double> rows) {
            if (role != TensorRole::kKey) return;
            const auto block = static_cast<std::size_t>(
                kScaleBlock * call.problem->head_dim_qk);
            for (; !rows.empty();
                 rows = rows.subspan(std::min(block, rows.size())))
              store_block(rows.first(std::min(block, rows.size())));
          };
          return variant;
        },
    .numerics = coarse_keys,
};

}  // namespace attnguard
