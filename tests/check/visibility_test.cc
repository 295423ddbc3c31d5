// visibility: exact, whatever the length.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "guard/base/rng.h"
#include "guard/probe/execute.h"
#include "tests/support/engines.h"
#include "tests/support/sanitizer.h"

namespace attnguard {
namespace {

constexpr int kSeeds = kUnderAddressSanitizer ? 1 : 20;
constexpr std::int64_t kLongest = kUnderAddressSanitizer ? 4096 : 16384;

using testing::HasSubstr;

class VisibilityCost
    : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(VisibilityCost, IsAtMostSixCallsAtAnyLength) {
  const auto& [dtype, mask] = GetParam();
  for (std::int64_t length : {128, 1024, 4096, 16384}) {
    if (length > kLongest) continue;
    const std::string line = "seq_len=" + std::to_string(length) +
                             " head_dim=32 dtype=" + dtype + " mask=" + mask;
    const ProblemResult result =
        run_problem(builtin("tiled"), line, {"visibility"});
    EXPECT_EQ(result.verdict, Verdict::kPass) << findings_text(result);
    EXPECT_LE(result.engine_calls, 6);
    EXPECT_THAT(expect_check(result, "visibility").coverage,
                HasSubstr("(ladder-up, ladder-down, needle, census"));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Dtypes, VisibilityCost,
    testing::Combine(testing::Values("fp32", "fp16", "bf16"),
                     testing::Values("full", "causal_top_left")),
    [](const auto& tested) {
      return std::get<0>(tested.param) + "_" + std::get<1>(tested.param);
    });

constexpr char kLongProblem[] =
    "num_heads=2 seq_len=4096 head_dim=32 mask=causal_bottom_right";

bool names(const ProblemResult& result, FindingKind kind, const Plant& plant) {
  for (const Finding& finding : expect_check(result, "visibility").findings)
    if (finding.kind == kind && finding.batch == plant.batch &&
        finding.head == plant.head && finding.query == plant.query &&
        finding.key == plant.key)
      return true;
  return false;
}

TEST(Visibility, NamesOneLeakedKeyInOneRowOfOneHeadAt4096) {
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const std::uint64_t bits = mix_bits(static_cast<std::uint64_t>(seed));
    const std::int64_t query = uniform_below(bits, 4095);
    const std::int64_t key =
        query + 1 + uniform_below(mix_bits(bits), 4095 - query);
    const Plant plant{0, seed % 2, query, key};
    const ProblemResult result =
        run_problem(planted(plant), kLongProblem, {"visibility"},
                    static_cast<std::uint64_t>(seed));
    EXPECT_TRUE(names(result, FindingKind::kLeak, plant))
        << "seed " << seed << " query " << query << " key " << key << "\n"
        << findings_text(result);
    for (const Finding& finding : expect_check(result, "visibility").findings)
      EXPECT_EQ(finding.query, query) << finding.message;
  }
}

TEST(Visibility, NamesOneDroppedKeyInOneRowOfOneHeadAt4096) {
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const std::uint64_t bits = mix_bits(static_cast<std::uint64_t>(seed) + 99);
    const std::int64_t query = 1 + uniform_below(bits, 4095);
    const std::int64_t key = uniform_below(mix_bits(bits), query + 1);
    const Plant plant{0, seed % 2, query, key};
    const ProblemResult result =
        run_problem(planted(plant), kLongProblem, {"visibility"},
                    static_cast<std::uint64_t>(seed));
    EXPECT_TRUE(names(result, FindingKind::kMiss, plant))
        << "seed " << seed << " query " << query << " key " << key << "\n"
        << findings_text(result);
    for (const Finding& finding : expect_check(result, "visibility").findings)
      EXPECT_EQ(finding.query, query) << finding.message;
  }
}

TEST(Visibility, SeesEverySinglePlantedKeyOfASmallProblem) {
  const char* line =
      "batch=2 num_heads=2 num_kv_heads=1 seq_len=9 head_dim=16 "
      "mask=causal_bottom_right+sliding_window(left=3,right=0)";
  for (std::int64_t query = 0; query < 9; ++query)
    for (std::int64_t key = 0; key < 9; ++key) {
      const Plant plant{1, 1, query, key};
      const bool allowed = key <= query && key >= query - 3;
      const ProblemResult result =
          run_problem(planted(plant), line, {"visibility"});
      EXPECT_EQ(result.verdict, Verdict::kViolation)
          << query << " " << key << findings_text(result);
      // A row whose only key is dropped shows nothing to name.
      if (allowed && query == 0) continue;
      EXPECT_TRUE(names(
          result, allowed ? FindingKind::kMiss : FindingKind::kLeak, plant))
          << query << " " << key << findings_text(result);
    }
}

TEST(Visibility, NamesTheKvHeadThatWasReadInstead) {
  const ProblemResult result =
      run_problem(builtin("wrong_kv_head"),
                  "num_heads=6 num_kv_heads=2 seq_len=20 mask=causal_top_left",
                  {"visibility"});
  EXPECT_THAT(findings_text(result),
              HasSubstr("of batch 0, KV head 1; its own is batch 0, KV head "
                        "0"));
}

TEST(Visibility, FallsBackToStepAndOneHotWhereScoresAreNarrow) {
  Engine narrow = builtin("textbook");
  narrow.capabilities.numerics = [](const Problem&) {
    Numerics numerics;
    numerics.score = Dtype::kBf16;
    return numerics;
  };
  const char* line = "seq_len=100 head_dim=64 mask=causal_top_left";
  const ProblemResult result = run_problem(narrow, line, {"visibility"});
  EXPECT_EQ(result.verdict, Verdict::kPass) << findings_text(result);
  const CheckResult& check = expect_check(result, "visibility");
  EXPECT_THAT(check.coverage, HasSubstr("census, step, one-hot"));
  EXPECT_THAT(check.note, HasSubstr("ladder-up: scores up to"));
}

TEST(Visibility, IsInconclusiveWhereTooFewColumnsTellKeysApart) {
  const ProblemResult result = run_problem(
      builtin("wrong_kv_head"),
      "num_heads=4 num_kv_heads=2 seq_len=300 head_dim_qk=16 head_dim_v=1",
      {"visibility"}, 1);
  EXPECT_NE(result.verdict, Verdict::kPass) << findings_text(result);
}

TEST(Visibility, PassesWhereTheScaleIsExtreme) {
  for (const char* line :
       {"seq_len=200 head_dim_qk=1 head_dim_v=128 dtype=fp16 "
        "softmax_scale=100",
        "seq_len=8 softmax_scale=1e-12", "seq_len=40 softmax_scale=1000",
        "seq_len=130 dtype=fp16 softmax_scale=0.01 mask=causal_top_left"}) {
    const ProblemResult result =
        run_problem(builtin("tiled"), line, {"visibility"});
    EXPECT_EQ(result.verdict, Verdict::kPass) << findings_text(result);
  }
}

}  // namespace
}  // namespace attnguard
