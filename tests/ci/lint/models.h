// Attention as exporters write it, with one thing changed at a time.
#ifndef ATTNGUARD_TESTS_CI_LINT_MODELS_H_
#define ATTNGUARD_TESTS_CI_LINT_MODELS_H_

#include <functional>

#include "tests/ci/lint/onnx_builder.h"

namespace attnguard::lint_test {

constexpr std::int64_t kTokens = 6, kWidth = 8, kHeads = 2;

// One layer of multi-head self-attention on [batch, tokens, width]; each hook
// may put operators of its own in.
struct Layer {
  using Hook = std::function<Value(Builder&, Value)>;
  Hook before = nullptr;  // Scores to masked scores.
  Hook after = nullptr;   // Weights to weights.
  Attributes softmax = {{"axis", std::int64_t{-1}}};
  int type = kFloat;
  std::string name = "softmax";
  std::string output_name = "";  // Of the product with the values.
  Value keys_from = "";          // Another sequence: cross-attention.
  Value past_key = "";           // [batch, heads, n, width / heads]
  bool transposed = false;       // Scores are key * query^T.
  bool prescaled = false;
  bool grouped = false;  // One KV head, expanded.

  Value operator()(Builder& b, const Value& hidden) const;
};

// Rows of [tokens, tokens] with `inside` where key - query <= diagonal.
std::vector<double> triangle(std::int64_t diagonal, double inside,
                             double outside, std::int64_t size = kTokens);

// Scores + constant matrix.
Layer::Hook add_mask(std::vector<double> values, int type = kFloat);
// Where(constant matrix, scores, fill).
Layer::Hook where_mask(std::vector<double> allowed, double fill,
                       int type = kFloat);

// A model of one layer, written to a file; gives the path.
std::string one_layer(const Layer& layer, int opset = 17);

}  // namespace attnguard::lint_test

#endif  // ATTNGUARD_TESTS_CI_LINT_MODELS_H_
