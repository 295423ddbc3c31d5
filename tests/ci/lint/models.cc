#include "tests/ci/lint/models.h"

#include <cmath>

namespace attnguard::lint_test {
namespace {

Value project(Builder& b, const Value& x, std::int64_t out, int type) {
  const Value weights = b.constant(
      {kWidth, out},
      std::vector<double>(static_cast<std::size_t>(kWidth * out), 0.125), type);
  const Value bias = b.constant(
      {out}, std::vector<double>(static_cast<std::size_t>(out), 0.5), type);
  return b.op("Add", {bias, b.op("MatMul", {x, weights})});
}

Value heads(Builder& b, const Value& x, std::int64_t count, Dims perm) {
  const Value split =
      b.op("Reshape", {x, b.vector({0, 0, count, kWidth / kHeads})});
  return b.op("Transpose", {split}, {{"perm", std::move(perm)}});
}

}  // namespace

Value Layer::operator()(Builder& b, const Value& hidden) const {
  const Value source = keys_from.empty() ? hidden : keys_from;
  const std::int64_t kv_heads = grouped ? 1 : kHeads;
  const std::int64_t kv_width = kv_heads * kWidth / kHeads;
  Value q = heads(b, project(b, hidden, kWidth, type), kHeads, {0, 2, 1, 3});
  Value k =
      heads(b, project(b, source, kv_width, type), kv_heads, {0, 2, 1, 3});
  Value v =
      heads(b, project(b, source, kv_width, type), kv_heads, {0, 2, 1, 3});
  if (!past_key.empty())
    k = b.op("Concat", {past_key, k}, {{"axis", std::int64_t{2}}});
  if (grouped)
    for (Value* x : {&k, &v}) {
      const Value wide = b.op("Expand", {b.op("Unsqueeze", {*x, b.vector({2})}),
                                         b.vector({1, 1, kHeads, 1, 1})});
      *x = b.op("Reshape", {wide, b.vector({0, kHeads, -1, kWidth / kHeads})});
    }
  const Value scale = b.scalar(0.5, type);
  if (prescaled) q = b.op("Mul", {q, scale});
  const Attributes swap = {{"perm", Dims{0, 1, 3, 2}}};
  Value scores = transposed ? b.op("MatMul", {k, b.op("Transpose", {q}, swap)})
                            : b.op("MatMul", {q, b.op("Transpose", {k}, swap)});
  if (!prescaled) scores = b.op("Mul", {scores, scale});
  if (before) scores = before(b, scores);
  Value weights = b.op("Softmax", {scores}, softmax, name);
  if (after) weights = after(b, weights);
  if (transposed) weights = b.op("Transpose", {weights}, swap);
  const Value out = b.op("MatMul", {weights, v}, {}, output_name);
  const Value joined =
      b.op("Reshape", {b.op("Transpose", {out}, {{"perm", Dims{0, 2, 1, 3}}}),
                       b.vector({0, 0, kWidth})});
  return b.op("Add", {hidden, project(b, joined, kWidth, type)});
}

std::vector<double> triangle(std::int64_t diagonal, double inside,
                             double outside, std::int64_t size) {
  std::vector<double> values;
  for (std::int64_t q = 0; q < size; ++q)
    for (std::int64_t k = 0; k < size; ++k)
      values.push_back(k - q <= diagonal ? inside : outside);
  return values;
}

Layer::Hook add_mask(std::vector<double> values, int type) {
  return [=](Builder& b, Value scores) {
    const Value mask = b.constant({1, 1, kTokens, kTokens}, values, type);
    return b.op("Add", {scores, mask}, {}, "add_mask");
  };
}

Layer::Hook where_mask(std::vector<double> allowed, double fill, int type) {
  return [=](Builder& b, Value scores) {
    const Value mask = b.constant({1, 1, kTokens, kTokens}, allowed, kBool);
    return b.op("Where", {mask, scores, b.scalar(fill, type)}, {},
                "where_mask");
  };
}

std::string one_layer(const Layer& layer, int opset) {
  Builder b(opset);
  const Value hidden = b.input("hidden", {-1, -1, kWidth}, layer.type);
  b.output(layer(b, hidden));
  return b.write();
}

}  // namespace attnguard::lint_test
