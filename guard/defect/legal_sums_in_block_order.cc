#include <algorithm>
#include <vector>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"
#include "guard/problem/placement.h"

namespace attnguard {
namespace {

std::vector<std::int64_t> in_memory_order(const VariantRow& row,
                                          const KeyRanges& keys) {
  std::vector<std::int64_t> order;
  for (const KeyRange& range : keys.ranges())
    for (std::int64_t j = range.begin; j < range.end; ++j) order.push_back(j);
  const Placement place = place_tensor(row.problem, TensorRole::kKey);
  if (place.tokens != nullptr)
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int64_t one, std::int64_t other) {
                       return place.tokens->block(row.place.batch, one) <
                              place.tokens->block(row.place.batch, other);
                     });
  return order;
}

}  // namespace

// A kernel may visit pages in any order. The bits depend on the block table,
// which is the same in every call.
const Defect kDefectLegalSumsInBlockOrder = {
    .id = "legal-sums-in-block-order",
    .summary =
        "legal: fp32 sums over blocks in the order in which they lie in memory",
    .cls = DefectClass::kNumericsNotBug,
    .shows_on =
        {"batch=2 num_heads=4 num_kv_heads=2 seq_len_q=8 seq_len_kv=40,33 "
         "head_dim=16 block_size=16 mask=causal_bottom_right",
         "batch=2 num_heads=2 seq_len_q=8 seq_len_kv=70,33 head_dim=32 "
         "dtype=bf16 block_size=16 shared_prefix=16",
         "seq_len_q=24 seq_len_kv=40 head_dim=16 block_size=4 layout=bshd "
         "mask=causal_bottom_right+sliding_window(left=20,right=0)"},
    .make =
        [] {
          AttentionVariant variant;
          variant.mix = [](const VariantRow& row, const KeyRanges& keys,
                           std::span<const double> weights,
                           const Fp64Rows& value, std::span<double> output) {
            const std::vector<std::int64_t> order = in_memory_order(row, keys);
            for (std::size_t c = 0; c < output.size(); ++c) {
              float sum = 0;
              for (std::int64_t j : order)
                sum +=
                    static_cast<float>(weights[static_cast<std::size_t>(j)]) *
                    static_cast<float>(value.row(j)[c]);
              output[c] = sum;
            }
          };
          return variant;
        },
};

}  // namespace attnguard
