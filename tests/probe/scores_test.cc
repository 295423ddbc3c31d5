// Ladder and needle: the scores a kernel sees are exact and far apart.
#include <gtest/gtest.h>

#include <set>

#include "guard/probe/ladder.h"
#include "guard/probe/needle.h"
#include "tests/support/engines.h"

namespace attnguard {
namespace {

// scale * q . k from rows rounded to the dtype, as an engine reads them.
double score(const Problem& p, const ScorePattern& scores, std::int64_t b,
             std::int64_t h, std::int64_t i, std::int64_t j) {
  std::vector<double> q(static_cast<std::size_t>(p.head_dim_qk));
  std::vector<double> k(q.size());
  scores.query_row(b, h, i, q.data());
  scores.key_row(b, p.kv_head_of(h), j, k.data());
  double dot = 0;
  for (std::size_t c = 0; c < q.size(); ++c) {
    EXPECT_EQ(quantize(p.dtype, q[c]), q[c]);
    EXPECT_EQ(quantize(p.dtype, k[c]), k[c]);
    dot += q[c] * k[c];
  }
  EXPECT_EQ(quantize(Dtype::kFp32, dot), dot) << "not exact in fp32";
  return dot * p.scale();
}

TEST(Ladder, RisesByTheGapExactlyInEveryDtypeUpTo16384Keys) {
  for (const char* dtype : {"fp64", "fp32", "fp16", "bf16"}) {
    for (std::int64_t dim : {2, 33, 64, 256}) {
      const Problem p = problem_of(
          "seq_len=16384 head_dim=" + std::to_string(dim) + " dtype=" + dtype);
      std::string why_not;
      const double gap = dominance_gap(default_numerics(p), 1);
      for (auto direction :
           {LadderScores::Direction::kUp, LadderScores::Direction::kDown}) {
        if (dim == 2 && p.max_len_kv() > 128 * 128) continue;
        const auto ladder =
            LadderScores::make(p, default_numerics(p), direction, gap, why_not);
        ASSERT_NE(ladder, nullptr) << dtype << " " << dim << " " << why_not;
        const bool up = direction == LadderScores::Direction::kUp;
        for (std::int64_t j : {1, 2, 127, 128, 129, 4095, 4096, 16383}) {
          const double step =
              score(p, *ladder, 0, 0, 0, j) - score(p, *ladder, 0, 0, 0, j - 1);
          EXPECT_GE(up ? step : -step, gap);
        }
      }
    }
  }
}

TEST(Ladder, IsRefusedWhereScoresAreHeldInANarrowType) {
  const Problem p = problem_of("seq_len=4096 head_dim=64 dtype=bf16");
  Numerics numerics;
  numerics.score = Dtype::kBf16;
  std::string why_not;
  EXPECT_EQ(LadderScores::make(p, numerics, LadderScores::Direction::kUp, 20,
                               why_not),
            nullptr);
  EXPECT_NE(why_not.find("do not fit bf16 scores"), std::string::npos)
      << why_not;
}

TEST(Ladder, IsRefusedForQuantisedKeysAndTooFewChannels) {
  std::string why_not;
  Numerics numerics;
  numerics.key_error = 1.0 / 254;
  const Problem p = problem_of("seq_len=64 head_dim=64");
  EXPECT_EQ(LadderScores::make(p, numerics, LadderScores::Direction::kUp, 20,
                               why_not),
            nullptr);
  EXPECT_EQ(why_not, "keys are stored quantised");
  const Problem narrow = problem_of("seq_len=300 head_dim=1");
  EXPECT_EQ(LadderScores::make(narrow, Numerics{}, LadderScores::Direction::kUp,
                               20, why_not),
            nullptr);
}

TEST(Needle, TheTargetBeatsEveryOtherKeyByTheGap) {
  for (const char* dtype : {"fp32", "fp16", "bf16"}) {
    const Problem p =
        problem_of(std::string("batch=2 num_heads=4 num_kv_heads=2 seq_len=129 "
                               "head_dim=24 mask=causal_top_left dtype=") +
                   dtype);
    std::string why_not;
    const auto needle =
        NeedleScores::make(p, default_numerics(p), 25, 3, why_not);
    ASSERT_NE(needle, nullptr) << why_not;
    std::set<std::int64_t> targets;
    KeyRanges allowed;
    for (std::int64_t h = 0; h < 4; ++h)
      for (std::int64_t i : {0, 1, 17, 64, 128}) {
        p.mask.allowed(p.row(1, i), allowed);
        const std::int64_t target = needle->target(1, h, i, allowed);
        ASSERT_TRUE(allowed.contains(target));
        targets.insert(target);
        const double best = score(p, *needle, 1, h, i, target);
        for (std::int64_t j = 0; j < 129; ++j) {
          if (j == target) continue;
          EXPECT_GE(best - score(p, *needle, 1, h, i, j), 25);
        }
      }
    EXPECT_GT(targets.size(), 10u);
  }
}

}  // namespace
}  // namespace attnguard
