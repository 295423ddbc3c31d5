#include <algorithm>
#include <cmath>

#include "guard/defect/defect_table.h"
#include "guard/defect/edit.h"

namespace attnguard {
namespace {

void softmax_over_queries(VariantScores& matrix) {
  for (std::int64_t j = 0; j < matrix.seq_len_kv; ++j) {
    double largest = -HUGE_VAL, sum = 0;
    const auto for_each_row = [&](auto&& visit) {
      for (std::int64_t i = 0; i < matrix.seq_len_q; ++i)
        if (matrix.keys[static_cast<std::size_t>(i)].contains(j))
          visit(matrix.row(i)[j]);
    };
    for_each_row([&](double& s) { largest = std::max(largest, s); });
    for_each_row([&](double& s) { sum += s = std::exp(s - largest); });
    for_each_row([&](double& s) { s /= sum; });
  }
}

}  // namespace

// After a transpose the last axis is not the keys any more. Each weight is
// divided by a sum over the other queries, so later tokens move earlier rows
// although none of their values is read. Training and validation loss fall
// below what the text allows, and generation fails.
const Defect kDefectSoftmaxOverQueries = {
    .id = "softmax-over-queries",
    .summary = "softmax over the query axis: columns of weights sum to 1",
    .cls = DefectClass::kFutureLeakNormaliser,
    .reports = {"karpathy/ng-video-lecture#42",
                "labmlai/annotated_deep_learning_paper_implementations#146"},
    .shows_on = {"seq_len=5 head_dim=16 mask=causal_bottom_right",
                 "num_heads=4 num_kv_heads=2 seq_len=24 head_dim=16 "
                 "mask=causal_bottom_right",
                 "seq_len_q=8 seq_len_kv=24 head_dim=16"},
    .hides_on = "seq_len=24 head_dim=16 mask=sliding_window(left=0,right=0)",
    .make =
        [] {
          AttentionVariant variant;
          variant.softmax = [](const Problem&,
                               std::span<VariantScores> entries) {
            for (VariantScores& matrix : entries) softmax_over_queries(matrix);
          };
          return variant;
        },
};

}  // namespace attnguard
