#include <algorithm>
#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {
namespace {

void softmax_at(std::int64_t q_index, std::int64_t kv_index,
                std::span<VariantScores> entries) {
  double largest = -HUGE_VAL, sum = 0;
  const auto for_each_entry = [&](auto&& visit) {
    for (VariantScores& matrix : entries)
      if (q_index < matrix.seq_len_q &&
          matrix.keys[static_cast<std::size_t>(q_index)].contains(kv_index))
        visit(matrix.row(q_index)[kv_index]);
  };
  for_each_entry([&](double& s) { largest = std::max(largest, s); });
  for_each_entry([&](double& s) { sum += s = std::exp(s - largest); });
  for_each_entry([&](double& s) { s /= sum; });
}

}  // namespace

// A softmax that is not told its axis takes the first one of three, which is
// the batch. With one entry every weight is 1.
const Defect kDefectSoftmaxOverBatch = {
    .id = "softmax-over-batch",
    .summary =
        "softmax over the batch axis: the weights of one place sum to 1 over "
        "the batch",
    .cls = DefectClass::kFutureLeakNormaliser,
    .shows_on = {"batch=3 seq_len=24 head_dim=16 mask=causal_bottom_right",
                 "seq_len=24 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 mask=sliding_window(left=0,right=0)",
    .make =
        [] {
          AttentionVariant variant;
          variant.softmax = [](const Problem& problem,
                               std::span<VariantScores> entries) {
            for (std::int64_t i = 0; i < problem.max_len_q(); ++i)
              for (std::int64_t j = 0; j < problem.max_len_kv(); ++j)
                softmax_at(i, j, entries);
          };
          return variant;
        },
};

}  // namespace attnguard
