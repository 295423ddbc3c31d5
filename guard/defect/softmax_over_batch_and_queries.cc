#include <algorithm>
#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {
namespace {

void softmax_column(std::int64_t kv_index, std::span<VariantScores> entries) {
  double largest = -HUGE_VAL, sum = 0;
  const auto for_each_row = [&](auto&& visit) {
    for (VariantScores& matrix : entries)
      for (std::int64_t i = 0; i < matrix.seq_len_q; ++i)
        if (matrix.keys[static_cast<std::size_t>(i)].contains(kv_index))
          visit(matrix.row(i)[kv_index]);
  };
  for_each_row([&](double& s) { largest = std::max(largest, s); });
  for_each_row([&](double& s) { sum += s = std::exp(s - largest); });
  for_each_row([&](double& s) { s /= sum; });
}

}  // namespace

// The scores are flattened to [batch * seq_len_q, seq_len_kv] and the softmax
// runs over the first of the two axes: later tokens and other entries alike
// sit in the denominator.
const Defect kDefectSoftmaxOverBatchAndQueries = {
    .id = "softmax-over-batch-and-queries",
    .summary =
        "softmax over batch and queries flattened: a single row has weight 1 "
        "on every key",
    .cls = DefectClass::kFutureLeakNormaliser,
    .reports = {"PetrochukM/PyTorch-NLP#2"},
    .shows_on = {"seq_len_q=1 seq_len_kv=2 head_dim=16",
                 "batch=2 seq_len=24 head_dim=16 mask=causal_bottom_right"},
    .hides_on = "seq_len=24 head_dim=16 mask=sliding_window(left=0,right=0)",
    .make =
        [] {
          AttentionVariant variant;
          variant.softmax = [](const Problem& problem,
                               std::span<VariantScores> entries) {
            for (std::int64_t j = 0; j < problem.max_len_kv(); ++j)
              softmax_column(j, entries);
          };
          return variant;
        },
};

}  // namespace attnguard
