#include "guard/probe/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "guard/probe/ladder.h"
#include "guard/probe/one_hot.h"
#include "guard/probe/ones.h"
#include "guard/probe/perturb.h"
#include "guard/probe/random.h"
#include "guard/probe/step.h"
#include "tests/support/engines.h"

namespace attnguard {
namespace {

TEST(Plan, CallsWithTheSameScoresShareColumns) {
  const Problem p = problem_of("seq_len=40 head_dim=8");
  Plan plan(p.head_dim_v);
  const auto scores = std::make_shared<RandomScores>(p, 1);
  const auto ones = std::make_shared<Ones>();
  const Ticket a = plan.request(scores, std::make_shared<OneHot>(0, 7));
  const Ticket b = plan.request(scores, ones);
  EXPECT_EQ(a.call, b.call);
  EXPECT_EQ(b.first_column, 7);
  // The same columns again cost nothing; columns that do not fit cost a call.
  EXPECT_EQ(plan.request(scores, ones).first_column, 7);
  EXPECT_EQ(plan.request(scores, std::make_shared<OneHot>(7, 8)).call, 1);
  EXPECT_EQ(plan.calls().size(), 2u);
  EXPECT_EQ(plan.request(scores, ones, {.repeat = 1}).call, 2)
      << "a repeat is a new call";
  EXPECT_EQ(plan.calls()[0].name(), "random: one-hot@0, ones");
}

TEST(Plan, AddsAColumnToEveryCallThatHasRoom) {
  const Problem p = problem_of("seq_len=40 head_dim=8");
  Plan plan(p.head_dim_v);
  plan.request(std::make_shared<RandomScores>(p, 1, 1, "a"),
               std::make_shared<OneHot>(0, 8));
  plan.request(std::make_shared<RandomScores>(p, 1, 1, "b"),
               std::make_shared<OneHot>(0, 7));
  plan.request(std::make_shared<RandomScores>(p, 1, 1, "c"),
               std::make_shared<OneHot>(0, 3));
  const auto tickets = plan.request_in_every_call(std::make_shared<Ones>());
  ASSERT_EQ(tickets.size(), 2u);
  EXPECT_EQ(tickets[0].call, 1);
  EXPECT_EQ(tickets[0].first_column, 7);
  EXPECT_EQ(tickets[1].call, 2);
  EXPECT_EQ(tickets[1].first_column, 3);
}

TEST(EdgeCuts, MeetTheFirstTheLastAndBothSidesOfTiles) {
  EXPECT_THAT(edge_cuts(40),
              testing::ElementsAre(1, 15, 16, 17, 31, 32, 33, 39));
  EXPECT_THAT(edge_cuts(2), testing::ElementsAre(1));
  EXPECT_THAT(edge_cuts(1), testing::IsEmpty());
  EXPECT_THAT(edge_cuts(0), testing::IsEmpty());
  EXPECT_THAT(edge_cuts(4096), testing::IsSupersetOf({3967, 3968, 3969}));
}

TEST(CutAssignment, GivesSlotsDifferentCutsAndRotatesThem) {
  const Problem p = problem_of(
      "batch=2 num_heads=6 num_kv_heads=3 seq_len=40 mask=causal_top_left");
  std::set<std::int64_t> cuts;
  const std::int64_t rounds = CutAssignment::rounds_for_each_cut(p, 5);
  EXPECT_EQ(rounds, 2);  // 8 edges and random cuts over 6 slots
  for (std::int64_t round = 0; round < rounds; ++round) {
    const CutAssignment assignment(p, round, 5);
    for (std::int64_t b = 0; b < 2; ++b)
      for (std::int64_t g = 0; g < 3; ++g)
        cuts.insert(assignment.key_cut(b, g));
    // A row holds exactly when all it sees is before the cut.
    for (std::int64_t h = 0; h < 6; ++h)
      for (std::int64_t i = 0; i < 40; ++i)
        EXPECT_EQ(assignment.must_hold(1, h, i),
                  i < assignment.key_cut(1, h / 2));
  }
  EXPECT_THAT(cuts, testing::IsSupersetOf({1, 15, 16, 17, 31, 32, 33, 39}));
}

TEST(CutAssignment, PerturbsOnlyQueriesWhereEveryRowSeesEveryKey) {
  const Problem p = problem_of("num_heads=2 seq_len=40 mask=full");
  const CutAssignment assignment(p, 0, 5);
  EXPECT_EQ(assignment.key_cut(0, 0), 40);
  EXPECT_TRUE(assignment.must_hold(0, 0, 0));
  EXPECT_FALSE(assignment.must_hold(0, 0, 39));
}

}  // namespace
}  // namespace attnguard
