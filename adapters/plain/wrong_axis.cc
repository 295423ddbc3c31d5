#include <cmath>

#include "adapters/plain/builtin_table.h"
#include "guard/engine/attention_variant.h"

namespace attnguard {
namespace {

// Softmax over the queries: each key shares itself among the rows that may
// see it, so columns sum to 1 and rows do not.
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

const BuiltinEngine kBuiltinWrongAxis = {
    .name = "wrong_axis",
    .summary =
        "known bad: softmax over the query axis, so columns of weights "
        "sum to 1 and later tokens reach earlier rows",
    .make =
        [] {
          AttentionVariant variant;
          variant.softmax = [](const Problem&,
                               std::span<VariantScores> entries) {
            for (VariantScores& matrix : entries) softmax_over_queries(matrix);
          };
          return variant_engine({}, {}, variant);
        },
};

}  // namespace attnguard
