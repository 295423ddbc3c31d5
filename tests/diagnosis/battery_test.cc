// The calls of the diagnosis, and giving them to others than the engine.
#include "guard/diagnosis/battery.h"

#include <gtest/gtest.h>

#include "guard/engine/attention_variant.h"
#include "guard/engine/reference.h"
#include "guard/problem/random_problem.h"
#include "tests/support/problems.h"

namespace attnguard {
namespace {

std::vector<double> all_elements(const ConstTensorView& view) {
  std::vector<double> elements, row(static_cast<std::size_t>(view.shape[3]));
  for (std::int64_t b = 0; b < view.shape[0]; ++b)
    for (std::int64_t h = 0; h < view.shape[1]; ++h)
      for (std::int64_t i = 0; i < view.shape[2]; ++i) {
        view.load_row(b, h, i, 0, view.shape[3], row.data());
        // NaN, which equals nothing, as a number of its own.
        for (double x : row) elements.push_back(std::isnan(x) ? 1e300 : x);
      }
  return elements;
}

TEST(Battery, GivesTheReplayWhatTheEngineWasGiven) {
  const Problem problem = problem_of(
      "batch=2 num_heads=4 num_kv_heads=2 seq_len_q=5,9 seq_len_kv=17,12 "
      "head_dim_qk=24 head_dim_v=16 dtype=fp16 mask=causal_bottom_right "
      "layout=sbhd");
  const Battery battery(problem, default_numerics(problem), 3);
  std::vector<std::vector<double>> given;
  Engine engine = reference_engine();
  engine.run = [&](const AttentionCall& call) {
    for (const ConstTensorView& view : {call.query, call.key, call.value})
      given.push_back(all_elements(view));
    return ok_status();
  };
  ASSERT_TRUE(record_outputs(engine, battery).has_value());
  ASSERT_EQ(given.size(), 3u * static_cast<std::size_t>(battery.size()));
  Replay replay(battery);
  for (int call = battery.size() - 1; call >= 0; --call) {
    bool used = false;
    EXPECT_TRUE(replay.with_call(call, [&](const ReplayedCall& inputs) {
      used = true;
      std::size_t at = 3 * static_cast<std::size_t>(call);
      for (const ConstTensorView& view :
           {inputs.call.query, inputs.call.key, inputs.call.value})
        EXPECT_EQ(all_elements(view), given[at++]) << call;
    }));
    EXPECT_TRUE(used);
  }
}

TEST(Battery, HasEveryProbeWhereAllFit) {
  const Problem problem =
      problem_of("seq_len=24 head_dim=16 mask=causal_bottom_right");
  const Battery battery(problem, default_numerics(problem), 1);
  std::set<std::string> names;
  for (const PlannedCall& call : battery.plan().calls())
    names.insert(call.scores->name());
  EXPECT_EQ(names, (std::set<std::string>{
                       "random", "random-large", "ladder-up", "ladder-down",
                       "needle", "census", "perturb", "perturb-extreme",
                       "shift+1000", "shift-1000", "shift-20000", "shift-70000",
                       "unused-large", "unused-nan"}));
  EXPECT_EQ(battery.size(), 15) << "random scores carry two calls";
  const Battery with_more(problem, default_numerics(problem), 1,
                          {.lse = true, .weights = true, .append = true});
  EXPECT_EQ(with_more.size(), 19);
}

TEST(Battery, LeavesOutRowsOfWhichNothingIsPromised) {
  const Problem problem = problem_of(
      "num_heads=2 seq_len_q=9 seq_len_kv=5 head_dim=16 empty_row=any "
      "mask=causal_bottom_right");
  const Battery battery(problem, default_numerics(problem), 1);
  ASSERT_EQ(battery.rows().size(), 10u);
  EXPECT_EQ(battery.rows().front().query, 4);
}

TEST(Battery, TakesEveryProblem) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Problem problem = random_problem(seed);
    const Engine engine = reference_engine();
    const Battery battery(problem, default_numerics(problem), seed,
                          BatteryCalls::of(engine));
    EXPECT_GE(battery.size(), 5) << problem.text();
    const auto outputs = record_outputs(engine, battery);
    ASSERT_TRUE(outputs.has_value()) << problem.text();
    for (int call = 0; call < battery.size(); ++call) {
      const std::vector<double>& numbers =
          (*outputs)[static_cast<std::size_t>(call)];
      EXPECT_EQ(numbers.size(), battery.parts(call).back().end);
      EXPECT_EQ(
          battery.parts(call).front().end,
          battery.rows().size() * static_cast<std::size_t>(problem.head_dim_v));
    }
  }
}

TEST(Battery, ReadsWhatIsGivenBesideTheOutput) {
  const Problem problem = problem_of(
      "batch=2 num_heads=2 seq_len_q=5 seq_len_kv=9,7 head_dim=4 dtype=fp32 "
      "block_size=4");
  Engine engine = reference_engine();
  ASSERT_TRUE(BatteryCalls::of(engine).lse);
  ASSERT_TRUE(BatteryCalls::of(engine).weights);
  ASSERT_TRUE(BatteryCalls::of(engine).append);
  const Battery battery(problem, default_numerics(problem), 1,
                        BatteryCalls::of(engine));
  const auto right = record_outputs(engine, battery);
  // The key of a block that belongs to nobody is written, one LSE is not.
  engine.append = [](const CacheAppend& append) {
    const double one = 1;
    append.key.store_row(append.problem->batch, 0, 2, 0, 1, &one);
    return append_tokens(append);
  };
  engine.run = [own = engine.run](const AttentionCall& call) {
    const Status status = own(call);
    if (call.softmax_lse.data != nullptr)
      fill_poison(call.softmax_lse.dtype, call.softmax_lse.at(1, 1, 4), 1);
    return status;
  };
  const auto wrong = record_outputs(engine, battery);
  ASSERT_TRUE(right && wrong);
  int lse_calls = 0, append_calls = 0;
  for (int call = 0; call < battery.size(); ++call) {
    const auto& one = (*right)[static_cast<std::size_t>(call)];
    const auto& other = (*wrong)[static_cast<std::size_t>(call)];
    int differ = 0;
    for (std::size_t n = 0; n < one.size(); ++n)
      differ +=
          !(one[n] == other[n] || (std::isnan(one[n]) && std::isnan(other[n])));
    const CallPart::Kind last = battery.parts(call).back().kind;
    EXPECT_EQ(
        differ,
        last == CallPart::Kind::kLse || last == CallPart::Kind::kCache ? 1 : 0)
        << battery.plan().calls()[static_cast<std::size_t>(call)].name();
    lse_calls += last == CallPart::Kind::kLse;
    append_calls += last == CallPart::Kind::kCache;
    if (last == CallPart::Kind::kLse) {
      EXPECT_TRUE(is_unwritten(other.back()));
    }
  }
  EXPECT_EQ(lse_calls, 1);
  EXPECT_EQ(append_calls, 2);
}

}  // namespace
}  // namespace attnguard
