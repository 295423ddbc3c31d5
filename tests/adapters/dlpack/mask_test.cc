// DLPack tensors as the masks of calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "adapters/dlpack/dlpack.h"
#include "guard/engine/mask_tensor.h"
#include "guard/engine/reference.h"
#include "tests/support/engines.h"

namespace attnguard {
namespace {

using dlpack::Tensor;
using testing::HasSubstr;

// A bool triangle of 2 entries, 3 queries, 4 keys: key <= query + 1.
struct Triangle {
  Triangle() {
    for (int entry = 0; entry < 2; ++entry)
      for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 4; ++j) bytes.push_back(j <= i + 1);
    tensor.data = bytes.data();
    tensor.ndim = 4;
    tensor.shape = shape.data();
    tensor.dtype = {dlpack::kBool, 8, 1};
  }
  std::vector<std::uint8_t> bytes;
  std::vector<std::int64_t> shape = {2, 1, 3, 4}, strides = {12, 99, 4, 1};
  Tensor tensor;
};

Problem masked_problem(const std::string& more = "") {
  const Result<Problem> problem = Problem::parse(
      "batch=2 seq_len_q=3 seq_len_kv=4 head_dim=8 mask=causal_bottom_right "
      "mask_form=boolean" +
      more);
  EXPECT_TRUE(problem.ok()) << problem.status().message();
  return problem.value();
}

TEST(DlpackMask, BoolIsAViewOfWhatMayBeSeen) {
  Triangle triangle;
  const Problem problem = masked_problem();
  for (const std::int32_t ndim : {4, 3}) {
    triangle.tensor.ndim = ndim;
    triangle.shape = ndim == 4 ? std::vector<std::int64_t>{2, 1, 3, 4}
                               : std::vector<std::int64_t>{2, 3, 4};
    triangle.tensor.shape = triangle.shape.data();
    const Result<MaskTensor> mask = dlpack::mask(triangle.tensor, problem);
    ASSERT_TRUE(mask.ok()) << mask.status().message();
    EXPECT_EQ(mask.value().form, MaskForm::kBoolean);
    EXPECT_EQ(static_cast<const void*>(mask.value().data),
              triangle.bytes.data());
    AttentionCall call;
    call.problem = &problem;
    call.mask = mask.value();
    KeyRanges keys;
    allowed_keys(call, problem.row(1, 1), keys);
    EXPECT_EQ(keys.count(), 3);
    EXPECT_EQ(keys.last(), 2);
  }
  // Strides of axes of length 1 mean nothing.
  triangle.shape = {2, 1, 3, 4};
  triangle.tensor.ndim = 4;
  triangle.tensor.shape = triangle.shape.data();
  triangle.tensor.strides = triangle.strides.data();
  EXPECT_TRUE(dlpack::mask(triangle.tensor, problem).ok());
}

TEST(DlpackMask, TheProblemSaysWhatTrueMeans) {
  Triangle triangle;
  Problem problem = masked_problem();
  problem.mask_form = MaskForm::kInverted;
  EXPECT_EQ(dlpack::mask(triangle.tensor, problem).value().form,
            MaskForm::kInverted);
  problem.mask_form = MaskForm::kImplied;
  EXPECT_EQ(dlpack::mask(triangle.tensor, problem).value().form,
            MaskForm::kBoolean);
  std::vector<float> scores(24, 0.0f);
  triangle.tensor.data = scores.data();
  triangle.tensor.dtype = {dlpack::kFloat, 32, 1};
  EXPECT_EQ(dlpack::mask(triangle.tensor, problem).value().form,
            MaskForm::kAdditive);
}

TEST(DlpackMask, SaysWhyItIsRefused) {
  struct Bad {
    const char* message;
    void (*spoil)(Triangle& triangle, Problem& problem);
  };
  for (const Bad& bad :
       {Bad{"device of type 2",
            [](Triangle&t, Problem&) { t.tensor.device.device_type = 2; }},
        Bad{"ndim is 5", [](Triangle&t, Problem&) { t.tensor.ndim = 5; }},
        Bad{"shape is NULL",
            [](Triangle&t, Problem&) { t.tensor.shape = nullptr; }},
        Bad{"data is NULL",
            [](Triangle&t, Problem&) { t.tensor.data = nullptr; }},
        Bad{"its shape is [2, 2, 3, 4] instead of [2, 1, 3, 4]",
            [](Triangle&t, Problem&) { t.shape[1] = 2; }},
        Bad{"stride 2 is 8 instead of 4; make it contiguous",
            [](Triangle&t, Problem&) {
              t.strides[2] = 8;
              t.tensor.strides = t.strides.data();
            }},
        Bad{"two axes are for one entry; the problem has 2",
            [](Triangle&t, Problem&) {
              t.tensor.ndim = 2;
              t.shape = {3, 4};
              t.tensor.shape = t.shape.data();
            }},
        Bad{"type code 2 of 32 bits and 1 lane; bool or fp32",
            [](Triangle&t, Problem&) {
              t.tensor.dtype = {dlpack::kFloat, 32, 1};
            }},
        Bad{"bool or fp32",
            [](Triangle&, Problem&p) { p.mask_form = MaskForm::kAdditive; }},
        Bad{"not aligned", [](Triangle&t, Problem&p) {
              p.mask_form = MaskForm::kAdditive;
              t.tensor.dtype = {dlpack::kFloat, 32, 1};
              t.tensor.byte_offset = 2;
            }}}) {
    Triangle triangle;
    Problem problem = masked_problem(" dtype=fp32");
    bad.spoil(triangle, problem);
    const Result<MaskTensor> mask = dlpack::mask(triangle.tensor, problem);
    ASSERT_FALSE(mask.ok()) << bad.message;
    EXPECT_THAT(mask.status().message(), HasSubstr(bad.message));
  }
}

}  // namespace
}  // namespace attnguard
