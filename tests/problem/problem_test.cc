#include "guard/problem/problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "guard/problem/random_problem.h"
#include "tests/support/problems.h"

namespace attnguard {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Problem, ParsesItsOwnTextBack) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Problem problem = random_problem(seed);
    const Result<Problem> back = Problem::parse(problem.text());
    ASSERT_TRUE(back.ok()) << problem.text() << back.status().message();
    EXPECT_EQ(back.value(), problem) << problem.text();
    EXPECT_EQ(back.value().text(), problem.text());
  }
}

TEST(Problem, PrintsTheCanonicalLine) {
  EXPECT_EQ(Problem().text(),
            "batch=1 num_heads=1 num_kv_heads=1 seq_len_q=16 seq_len_kv=16 "
            "head_dim_qk=64 head_dim_v=64 dtype=fp32 mask=full");
  EXPECT_EQ(
      problem_of("num_heads=4 seq_len=9 head_dim=8 batch=2 layout=bshd "
                 "out_dtype=fp32 dtype=bf16 softmax_scale=0.5 "
                 "mask=causal_top_left")
          .text(),
      "batch=2 num_heads=4 num_kv_heads=4 seq_len_q=9 seq_len_kv=9 "
      "head_dim_qk=8 head_dim_v=8 dtype=bf16 out_dtype=fp32 softmax_scale=0.5 "
      "mask=causal_top_left layout=bshd");
}

TEST(Problem, TakesBlanksInsideTheParenthesesOfAMask) {
  const Problem problem = problem_of(
      "  seq_len=4   mask=sliding_window(left=1, right=0)  dtype=fp16");
  EXPECT_EQ(problem.mask.text(), "sliding_window(left=1,right=0)");
  EXPECT_EQ(problem.dtype, Dtype::kFp16);
}

TEST(Problem, GivesEachBatchEntryItsOwnLengths) {
  const Problem ragged = problem_of("batch=3 seq_len_q=2,0,5 seq_len_kv=7");
  EXPECT_EQ(ragged.len_q(0), 2);
  EXPECT_EQ(ragged.len_q(1), 0);
  EXPECT_EQ(ragged.len_q(2), 5);
  EXPECT_EQ(ragged.len_kv(2), 7);
  EXPECT_EQ(ragged.max_len_q(), 5);
  const RowPlace row = ragged.row(2, 4);
  EXPECT_EQ(row.batch, 2);
  EXPECT_EQ(row.seq_len_q, 5);
  EXPECT_EQ(row.bottom_right(), 6);
}

TEST(Problem, MapsHeadsToKvHeadsByGroups) {
  const Problem problem = problem_of("num_heads=6 num_kv_heads=2");
  EXPECT_EQ(problem.group_size(), 3);
  EXPECT_EQ(problem.kv_head_of(2), 0);
  EXPECT_EQ(problem.kv_head_of(3), 1);
}

TEST(Problem, DefaultsFollowFromOtherFields) {
  EXPECT_EQ(problem_of("head_dim=16").scale(), 0.25);
  EXPECT_EQ(problem_of("head_dim=16 softmax_scale=2").scale(), 2);
  EXPECT_EQ(problem_of("dtype=fp16").output_dtype(), Dtype::kFp16);
  EXPECT_EQ(
      problem_of("dtype=fp16 out_dtype=fp32").dtype_of(TensorRole::kOutput),
      Dtype::kFp32);
  EXPECT_EQ(problem_of("num_heads=4").num_kv_heads, 4);
}

TEST(Problem, LaysTensorsOutInTheOrderOfTheLayoutName) {
  const std::string line =
      "batch=2 num_heads=4 num_kv_heads=2 seq_len_q=3 seq_len_kv=5 "
      "head_dim_qk=6 head_dim_v=7 layout=";
  const Problem bhsd = problem_of(line + "bhsd");
  EXPECT_EQ(bhsd.shape(TensorRole::kQuery), (Shape4{2, 4, 3, 6}));
  EXPECT_EQ(bhsd.shape(TensorRole::kKey), (Shape4{2, 2, 5, 6}));
  EXPECT_EQ(bhsd.shape(TensorRole::kValue), (Shape4{2, 2, 5, 7}));
  EXPECT_EQ(bhsd.shape(TensorRole::kOutput), (Shape4{2, 4, 3, 7}));
  EXPECT_EQ(bhsd.strides(TensorRole::kQuery), (Shape4{72, 18, 6, 1}));
  EXPECT_EQ(bhsd.extent(TensorRole::kQuery), 144);
  EXPECT_EQ(problem_of(line + "bshd").strides(TensorRole::kQuery),
            (Shape4{72, 6, 24, 1}));
  EXPECT_EQ(problem_of(line + "sbhd").strides(TensorRole::kQuery),
            (Shape4{24, 6, 48, 1}));
}

TEST(Problem, OverridesTheStridesOfOneTensor) {
  const Problem problem =
      problem_of("num_heads=2 seq_len=3 head_dim=4 key_strides=100,40,10,2");
  EXPECT_EQ(problem.strides(TensorRole::kKey), (Shape4{100, 40, 10, 2}));
  EXPECT_EQ(problem.extent(TensorRole::kKey), 40 + 2 * 10 + 3 * 2 + 1);
  EXPECT_EQ(problem.strides(TensorRole::kQuery), (Shape4{24, 12, 4, 1}));
}

TEST(Problem, HoldsNothingWhereALengthIsZero) {
  const Problem problem = problem_of("seq_len_q=0 seq_len_kv=3");
  EXPECT_EQ(problem.extent(TensorRole::kQuery), 0);
  EXPECT_EQ(problem.extent(TensorRole::kOutput), 0);
  EXPECT_GT(problem.extent(TensorRole::kKey), 0);
}

TEST(Problem, RefusesStridesThatShareAnAddress) {
  const std::string line = "batch=2 num_heads=2 seq_len=3 head_dim=4 ";
  for (const char* strides :
       {"query_strides=24,0,4,1", "key_strides=24,12,3,1",
        "value_strides=23,12,4,1", "output_strides=24,12,4,0",
        "query_strides=0,0,0,0", "query_strides=12,12,4,1"}) {
    const Result<Problem> problem = Problem::parse(line + strides);
    ASSERT_FALSE(problem.ok()) << strides;
    EXPECT_THAT(problem.status().message(), HasSubstr("share an address"));
  }
  for (const char* strides :
       {"query_strides=24,12,4,1", "key_strides=1,2,4,12",
        "value_strides=12,24,4,1", "output_strides=100,30,8,2"})
    EXPECT_TRUE(Problem::parse(line + strides).ok()) << strides;
  // The stride of an axis with one element is never stepped over.
  EXPECT_TRUE(
      Problem::parse("seq_len=3 head_dim=4 query_strides=0,0,4,1").ok());
}

TEST(Problem, SaysWhatIsWrongWithALine) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "the line is empty"},
      {"   ", "the line is empty"},
      {"seq_len", "expected name=value, got 'seq_len'"},
      {"seqlen=4", "unknown field 'seqlen'; did you mean 'seq_len'?"},
      {"batch=1 batch=1", "field 'batch' is given twice"},
      {"batch=two", "batch: expected an integer, got 'two'"},
      {"batch=", "batch: expected an integer, got ''"},
      {"batch=0", "batch=0: must be at least 1"},
      {"num_heads=-1", "num_heads=-1: must be at least 1"},
      {"head_dim=0", "head_dim_qk=0: must be at least 1"},
      {"head_dim_v=0", "head_dim_v=0: must be at least 1"},
      {"num_heads=4 num_kv_heads=3", "not a multiple of num_kv_heads=3"},
      {"num_heads=2 num_kv_heads=4", "not a multiple of num_kv_heads=4"},
      {"seq_len=a", "seq_len: expected a length"},
      {"seq_len_q=1,", "seq_len_q: expected a length"},
      {"seq_len_kv=-1", "seq_len_kv=-1: must be at least 0"},
      {"batch=3 seq_len_q=1,2", "seq_len_q has 2 lengths for batch=3"},
      {"dtype=fp23", "unknown dtype 'fp23'; did you mean"},
      {"out_dtype=x", "out_dtype: unknown dtype 'x'"},
      {"softmax_scale=x", "softmax_scale: expected a number"},
      {"softmax_scale=0", "softmax_scale must be a number from 1e-12 to 1e12"},
      {"softmax_scale=inf",
       "softmax_scale must be a number from 1e-12 to 1e12"},
      {"softmax_scale=nan",
       "softmax_scale must be a number from 1e-12 to 1e12"},
      {"mask=causal", "mask: unknown mask 'causal'"},
      {"layout=bhds", "unknown layout 'bhds'; did you mean 'bhsd'?"},
      {"query_strides=1,2,3", "four strides: batch,head,position,channel"},
      {"key_strides=1,2,3,x", "four strides: batch,head,position,channel"},
      {"output_strides=64,64,-64,1", "strides must not be negative"},
      {"value_strides=1,1,99999999999,1", "span more than 2^36 elements"},
      {"seq_len=99999999999", "the limit is 2^36"},
  };
  for (const auto& [line, message] : cases) {
    const Result<Problem> problem = Problem::parse(line);
    ASSERT_FALSE(problem.ok()) << line;
    EXPECT_EQ(problem.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(problem.status().message(), StartsWith("problem: ")) << line;
    EXPECT_THAT(problem.status().message(), HasSubstr(message)) << line;
  }
}

TEST(ProblemFields, AreEachFoundByNameAndExplained) {
  std::set<std::string_view> names;
  for (const ProblemField& field : all_problem_fields()) {
    EXPECT_EQ(find_problem_field(field.name), &field);
    EXPECT_FALSE(field.help.empty());
    names.insert(field.name);
  }
  EXPECT_EQ(names.size(), all_problem_fields().size());
  EXPECT_EQ(find_problem_field("seq"), nullptr);
}

TEST(ProblemText, RefusesAShorthandBesideItsParts) {
  for (const char* line : {"seq_len_q=4 seq_len=5", "seq_len=5 seq_len_q=4",
                           "head_dim=8 head_dim_v=4"}) {
    const Result<Problem> problem = Problem::parse(line);
    ASSERT_FALSE(problem.ok()) << line;
    EXPECT_NE(problem.status().message().find("set the same field; keep one"),
              std::string::npos)
        << problem.status().message();
  }
}

TEST(ProblemText, AcceptsTabsAndLineBreaksBetweenFields) {
  EXPECT_TRUE(Problem::parse("seq_len=4\thead_dim=8\n").ok());
}

TEST(Problem, RefusesScalesAndSizesThatNoKernelCouldServe) {
  for (const char* line :
       {"seq_len=8 softmax_scale=1e-310", "seq_len=8 softmax_scale=1e38",
        "batch=1000000000000 seq_len=0",
        "num_heads=4000000000 head_dim=4000000000 seq_len=0"})
    EXPECT_FALSE(Problem::parse(line).ok()) << line;
}

}  // namespace
}  // namespace attnguard
