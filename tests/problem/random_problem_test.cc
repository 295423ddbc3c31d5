// Random problems reach every corner of what a problem can say.
#include "guard/problem/random_problem.h"

#include <gtest/gtest.h>

namespace attnguard {
namespace {

TEST(RandomProblem, IsValidAndTheSameForTheSameSeed) {
  std::set<std::string> lines;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Problem problem = random_problem(seed);
    EXPECT_TRUE(problem.validate().ok()) << problem.text();
    EXPECT_EQ(problem, random_problem(seed));
    const Result<Problem> parsed = Problem::parse(problem.text());
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    EXPECT_EQ(parsed.value(), problem);
    lines.insert(problem.text());
  }
  EXPECT_GT(lines.size(), 495u);
}

TEST(RandomProblem, ReachesEveryMaskKindAloneAndJoined) {
  std::map<std::string_view, int> alone, joined;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    const Problem problem = random_problem(seed);
    const auto& terms = problem.mask.terms();
    for (const MaskTerm& term : terms)
      ++(terms.size() > 1 ? joined : alone)[term.kind->name];
  }
  for (const MaskKind* kind : all_mask_kinds()) {
    EXPECT_GT(alone[kind->name], 10) << kind->name;
    EXPECT_GT(joined[kind->name], 2) << kind->name;
  }
}

TEST(RandomProblem, ReachesEveryDtypeLayoutHeadGroupingAndLength) {
  std::set<Dtype> dtypes, out_dtypes;
  std::set<Layout> layouts;
  int grouped = 0, ragged = 0, decode = 0, square = 0, empty = 0, strided = 0,
      scaled = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Problem problem = random_problem(seed);
    dtypes.insert(problem.dtype);
    out_dtypes.insert(problem.output_dtype());
    layouts.insert(problem.layout);
    grouped += problem.group_size() > 1;
    ragged += problem.seq_len_kv.size() > 1;
    decode += problem.max_len_q() == 1 && problem.max_len_kv() > 1;
    square += problem.seq_len_q == problem.seq_len_kv;
    empty += problem.max_len_kv() == 0;
    scaled += problem.softmax_scale.has_value();
    strided += problem.query_strides || problem.key_strides ||
               problem.value_strides || problem.output_strides;
  }
  EXPECT_EQ(dtypes.size(), all_dtypes().size());
  EXPECT_EQ(out_dtypes.size(), all_dtypes().size());
  EXPECT_EQ(layouts.size(), 3u);
  for (int count : {grouped, ragged, decode, square, empty, strided, scaled})
    EXPECT_GT(count, 20);
}

}  // namespace
}  // namespace attnguard
