// Files that are no models, or broken ones: a reason, and never a crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/ci/lint/models.h"
#include "tests/ci/run_words.h"

namespace attnguard::lint_test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

Outcome lint_file(const std::string& path) { return run_words({"lint", path}); }

std::string causal_model() {
  Builder b;
  const Value hidden = b.input("hidden", {-1, -1, kWidth});
  Layer layer{.before = where_mask(triangle(0, 1, 0), -1e4)};
  b.output(layer(b, hidden));
  return b.bytes();
}

TEST(HostileFile, IsNoModel) {
  for (const std::string& bytes :
       {std::string(), std::string("not a model at all"),
        std::string(4096, '\xff'), std::string(64, '\0')}) {
    const std::string path = write_file("hostile.onnx", bytes);
    const Outcome outcome = lint_file(path);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, HasSubstr(path + ": not an ONNX model"));
  }
  const Outcome folder = lint_file(temporary_folder());
  EXPECT_EQ(folder.code, 2);
  EXPECT_THAT(folder.err, HasSubstr("is a folder"));
}

TEST(HostileFile, CutAnywhere) {
  const std::string whole = causal_model();
  ASSERT_EQ(lint_file(write_file("cut.onnx", whole)).code, 1);
  for (std::size_t size = 0; size < whole.size(); size += 7)
    EXPECT_THAT(lint_file(write_file("cut.onnx", whole.substr(0, size))).code,
                AnyOf(1, 2, 4, 0))
        << size;
  EXPECT_EQ(
      lint_file(write_file("cut.onnx", whole.substr(0, whole.size() / 2))).code,
      2);
}

TEST(HostileFile, BytesChangedAtRandom) {
  const std::string whole = causal_model();
  std::mt19937 random(1);
  for (int trial = 0; trial < 600; ++trial) {
    std::string bytes = whole;
    for (int change = 0; change < 3; ++change)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    EXPECT_THAT(lint_file(write_file("changed.onnx", bytes)).code,
                AnyOf(0, 1, 2, 4));
  }
}

TEST(HostileGraph, CyclesMissingInputsAndScalars) {
  Builder b;
  // v0 = Add(v0, v1), v1 = MatMul(v0, v0): names are given in order.
  b.op("Add", {"v0", "v1"});
  b.op("MatMul", {"v0", "v0"});
  const Value weights = b.op("Softmax", {"v0"}, {{"axis", std::int64_t{9}}});
  b.op("MatMul", {weights, "v1"});
  b.op("Softmax", {});
  b.op("MatMul", {});
  b.op("Where", {"v2"});
  const Value scalar = b.constant({}, {});
  const Value lone = b.op("Softmax", {b.op("MatMul", {scalar, "nowhere"})});
  b.op("MatMul", {lone, "nowhere"});
  b.op("Attention", {});
  b.op("MultiHeadAttention", {}, {}, "", "com.microsoft");
  EXPECT_THAT(lint_file(b.write()).code, AnyOf(0, 1));
}

TEST(HostileGraph, MasksThatDoNotHoldTogether) {
  for (const Dims& dims : {Dims{0, 0}, Dims{}, Dims{-1, 4},
                           Dims{1 << 30, 1 << 30}, Dims{3, 5, 7}, Dims{36}}) {
    Builder b;
    const Value hidden = b.input("hidden", {-1, -1, kWidth});
    Layer layer;
    layer.before = [&](Builder& builder, Value scores) {
      const Value mask = builder.constant(dims, triangle(1, 1, 0), kBool);
      builder.corrupt(mask, 5);
      const Value turned =
          builder.op("Transpose", {mask}, {{"perm", Dims{1, 7}}});
      scores = builder.op("Where", {turned, scores, builder.scalar(-1e9)});
      const Value cut = builder.op(
          "Slice", {mask, builder.vector({-99}), builder.vector({1 << 30}),
                    builder.vector({77})});
      scores = builder.op("Add", {scores, cut});
      const Value many =
          builder.op("ConstantOfShape", {builder.vector({1 << 20, 1 << 20})});
      return builder.op("Where", {many, scores, builder.op("Trilu", {mask})});
    };
    b.output(layer(b, hidden));
    EXPECT_THAT(lint_file(b.write()).code, AnyOf(0, 1));
  }
}

// x = x + x, a hundred times: two ways at each step.
TEST(HostileGraph, ManyWaysEndInTime) {
  Builder b;
  Value x = b.op("Identity", {b.input("x", {-1, -1, 4})});
  Value mask = b.input("mask", {-1, -1});
  Value scores = b.op("Identity", {x});
  for (int i = 0; i < 100; ++i) {
    x = b.op("Add", {x, x});
    mask = b.op("Add", {mask, mask});
    scores = b.op("Mul", {scores, scores});
  }
  scores = b.op("Add", {b.op("MatMul", {x, x}), mask});
  b.output(b.op("MatMul", {b.op("Softmax", {scores}), x}));
  EXPECT_THAT(lint_file(b.write()).code, AnyOf(0, 1));
}

}  // namespace
}  // namespace attnguard::lint_test
