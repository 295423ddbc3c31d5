// How often calls are sampled, and which rows are drawn.
#include "guard/runtime/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "guard/base/rng.h"
#include "guard/runtime/guard.h"
#include "tests/runtime/recording_sink.h"
#include "tests/support/problems.h"

namespace attnguard {
namespace {

using namespace runtime_internal;

TEST(Sampler, GapsAreGeometric) {
  constexpr int kDraws = 200000;
  for (double mean : {2.0, 10.0, 1000.0}) {
    double sum = 0, short_ones = 0;
    for (int n = 0; n < kDraws; ++n) {
      const std::int64_t gap = draw_gap(derive_seed(3, n), mean);
      ASSERT_GE(gap, 1);
      sum += static_cast<double>(gap);
      short_ones += static_cast<double>(gap) <= mean;
    }
    EXPECT_NEAR(sum / kDraws, mean, 0.01 * mean);
    EXPECT_NEAR(short_ones / kDraws, 1 - std::pow(1 - 1 / mean, mean), 0.005);
  }
  EXPECT_EQ(draw_gap(7, 1), 1);
  EXPECT_EQ(draw_gap(7, 0), kNever);
}

TEST(Sampler, EveryRowHasAChanceAndEdgesMore) {
  const Problem problem =
      problem_of("batch=2 num_heads=2 seq_len=200,0 head_dim=8 packed=true");
  std::vector<int> hits(200, 0);
  std::set<std::int64_t> heads;
  RowIndex row;
  for (std::uint64_t n = 0; n < 100000; ++n) {
    ASSERT_TRUE(pick_row(problem, derive_seed(11, n), row));
    ASSERT_EQ(row.batch, 0);
    ++hits[static_cast<std::size_t>(row.query)];
    heads.insert(row.head);
  }
  EXPECT_EQ(heads.size(), 2u);
  for (int count : hits) EXPECT_GT(count, 150);
  for (std::int64_t edge :
       {0, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 199})
    EXPECT_GT(hits[static_cast<std::size_t>(edge)], 330) << edge;
  EXPECT_FALSE(
      pick_row(problem_of("seq_len_q=0 seq_len_kv=4 head_dim=8"), 1, row));
}

TEST(Sampler, TheRealRateIsThePolicys) {
  for (std::int64_t every : {1, 7, 100}) {
    RuntimePolicy policy = look_always({LiveCheck::kFinite});
    policy.patches[0].sample_every = every;
    auto guard = Guard::create(policy);
    ASSERT_TRUE(guard.ok());
    const LayerHandle layer = guard.value()->layer("a");
    std::uint64_t yes = 0;
    constexpr int kCalls = 200000;
    for (int n = 0; n < kCalls; ++n) yes += guard.value()->sampled(layer);
    const GuardCounters counters = guard.value()->counters();
    EXPECT_EQ(counters.calls, static_cast<std::uint64_t>(kCalls));
    EXPECT_EQ(counters.sampled, yes);
    const double expected =
        static_cast<double>(kCalls) / static_cast<double>(every);
    EXPECT_NEAR(static_cast<double>(yes), expected, 6 * std::sqrt(expected));
  }
}

TEST(Sampler, ZeroIsNever) {
  RuntimePolicy policy = look_always({LiveCheck::kFinite});
  policy.patches[0].sample_every = 0;
  auto guard = Guard::create(policy);
  const LayerHandle layer = guard.value()->layer("a");
  for (int n = 0; n < 100000; ++n) ASSERT_FALSE(guard.value()->sampled(layer));
  EXPECT_EQ(guard.value()->counters().calls, 100000u);
}

// A plain every-fourth would meet one layer of four, for ever.
TEST(Sampler, NoRhythmOfLayersHidesOne) {
  RuntimePolicy policy = look_always({LiveCheck::kFinite});
  policy.patches[0].sample_every = 4;
  auto guard = Guard::create(policy);
  LayerHandle layers[4];
  for (int l = 0; l < 4; ++l)
    layers[l] = guard.value()->layer("blk." + std::to_string(l));
  int seen[4] = {};
  for (int n = 0; n < 40000; ++n)
    seen[n % 4] += guard.value()->sampled(layers[n % 4]);
  for (int count : seen) EXPECT_NEAR(count, 2500, 300);
}

TEST(RuntimePolicy, LaterPatchesWinForTheirLayers) {
  RuntimePolicy policy;
  policy.patches.resize(2);
  policy.patches[0].sample_every = 10;
  policy.patches[0].severity_actions[Severity::kError] = kActionLog;
  policy.patches[1].layer_glob = "*.cross";
  policy.patches[1].sample_every = 1;
  policy.patches[1].severities[LiveCheck::kOnes] = Severity::kOff;
  policy.patches[1].check_actions[LiveCheck::kFinite] = kActionAbort;
  const RuntimeSettings self = policy.resolve("blk.0.self");
  const RuntimeSettings cross = policy.resolve("blk.0.cross");
  EXPECT_EQ(self.sample_every, 10);
  EXPECT_EQ(cross.sample_every, 1);
  EXPECT_TRUE(self.is_on(LiveCheck::kOnes));
  EXPECT_FALSE(cross.is_on(LiveCheck::kOnes));
  EXPECT_EQ(self.check(LiveCheck::kFinite).actions, kActionCount | kActionLog);
  EXPECT_EQ(cross.check(LiveCheck::kFinite).actions,
            kActionCount | kActionAbort);
  EXPECT_EQ(cross.check(LiveCheck::kRecompute).actions,
            kActionCount | kActionLog);
}

TEST(RuntimePolicy, WrongValuesAreNamed) {
  RuntimePolicy policy;
  policy.max_overhead = 5;
  const auto guard = Guard::create(policy);
  ASSERT_FALSE(guard.ok());
  EXPECT_EQ(guard.status().message(),
            "runtime: max_overhead is 5, expected a share from 0 to 1 (0.5% is "
            "0.005)");
  policy = {};
  policy.patches.resize(1);
  policy.patches[0].rows = 0;
  EXPECT_NE(Guard::create(policy).status().message().find("rows of layers '*'"),
            std::string::npos);
}

}  // namespace
}  // namespace attnguard
