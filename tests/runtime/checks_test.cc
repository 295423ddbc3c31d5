// Every live check on correct engines and on known defects.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "guard/defect/defect.h"
#include "guard/runtime/guard.h"
#include "tests/runtime/live_call.h"
#include "tests/runtime/recording_sink.h"
#include "tests/support/engines.h"

namespace attnguard {
namespace {

using ::testing::HasSubstr;

struct Looked {
  std::shared_ptr<RecordingSink> sink = std::make_shared<RecordingSink>();
  std::unique_ptr<Guard> guard;
  LayerHandle layer;
};

Looked looking(RuntimePolicy policy) {
  Looked looked;
  Result<std::unique_ptr<Guard>> guard =
      Guard::create(std::move(policy), {.sink = looked.sink});
  EXPECT_TRUE(guard.ok()) << guard.status().message();
  looked.guard = std::move(guard.value());
  looked.layer = looked.guard->layer("blk.0.attn");
  return looked;
}

// One call of the engine on the problem, looked at by these checks.
GuardCounters look(const Engine& engine, const std::string& line,
                   std::vector<LiveCheck> checks, std::string* text = nullptr,
                   int calls = 1) {
  Looked looked = looking(look_always(std::move(checks)));
  LayerOptions options;
  options.numerics = engine.capabilities.numerics;
  const LayerHandle layer = looked.guard->layer("engine", options);
  LiveCallData data(line);
  const AttentionCallback guarded = looked.guard->wrap(engine.run, layer);
  for (int n = 0; n < calls; ++n) {
    data.fill(static_cast<std::uint64_t>(n) + 1);
    const Status status = guarded(data.call());
    EXPECT_TRUE(status.ok()) << status.message();
  }
  if (text != nullptr) *text = looked.sink->text();
  return looked.guard->counters();
}

const std::string kLiveProblems[] = {
    "seq_len=40 head_dim=16 mask=causal_bottom_right",
    "batch=3 num_heads=4 num_kv_heads=2 seq_len_q=1 seq_len_kv=65,17,130 "
    "head_dim=32 dtype=fp16 mask=causal_bottom_right",
    "batch=2 num_heads=2 seq_len_q=9 seq_len_kv=33 head_dim=24 dtype=bf16 "
    "mask=causal_bottom_right+sliding_window(left=7,right=0)",
    "batch=3 num_heads=2 seq_len=5,0,37 head_dim=16 packed=true "
    "mask=causal_bottom_right",
    "batch=2 num_heads=6 num_kv_heads=2 seq_len_q=3 seq_len_kv=50,34 "
    "head_dim=32 block_size=16 mask=causal_bottom_right softcap=20",
    "num_heads=4 seq_len_q=7 seq_len_kv=29 head_dim=16 alibi_max_bias=8 "
    "mask=causal_bottom_right",
    "num_heads=2 seq_len=33 head_dim=16 sinks=0.5,-1 softmax_scale=0.3 "
    "mask=causal_top_left",
    "num_heads=2 seq_len_q=9 seq_len_kv=5 head_dim=16 "
    "mask=causal_bottom_right",
    "num_heads=2 seq_len=31 head_dim=16 mask=documents(lengths=8:9:14)",
    "num_heads=2 seq_len=12 head_dim=32 mask_form=additive "
    "mask=causal_bottom_right dtype=fp64",
};

class EveryProblem : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryProblem, CorrectEnginesAreClean) {
  ASSERT_TRUE(Problem::parse(GetParam()).ok())
      << Problem::parse(GetParam()).status().message();
  for (const char* name : {"tiled", "reference"}) {
    const Engine engine = builtin(name);
    if (!unsupported_reason(engine, problem_of(GetParam())).empty()) continue;
    std::string text;
    const GuardCounters counters =
        look(engine, GetParam(),
             {all_live_checks().begin(), all_live_checks().end()}, &text, 20);
    EXPECT_EQ(text, "") << name;
    EXPECT_EQ(counters.calls, 20u);
    EXPECT_EQ(counters.checked, 20u);
    EXPECT_GT(counters.check(LiveCheck::kRecompute).rows, 0u);
    EXPECT_GT(counters.check(LiveCheck::kFinite).rows, 0u);
    EXPECT_GT(counters.check(LiveCheck::kOnes).rows, 0u);
    EXPECT_EQ(counters.canary.finished, 1u);
    for (const CheckCounters& check : counters.checks) {
      EXPECT_EQ(check.skipped_for(SkipReason::kGuardError), 0u);
      EXPECT_EQ(check.skipped_for(SkipReason::kEngineError), 0u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Live, EveryProblem,
                         ::testing::ValuesIn(kLiveProblems));

TEST(LiveChecks, NanThatCameFromNowhereIsFound) {
  Looked looked = looking(look_always({LiveCheck::kFinite}));
  LiveCallData data("num_heads=2 seq_len=20 head_dim=8 mask=full");
  const AttentionCall call = data.call();
  ASSERT_TRUE(builtin("tiled").run(call).ok());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  call.output.store_row(0, 1, 7, 3, 1, &nan);
  EXPECT_EQ(looked.guard->observe(looked.layer, call).violations, 1);
  EXPECT_THAT(looked.sink->text(),
              HasSubstr("blk.0.attn: finite: batch 0, head 1, query 7: output "
                        "channel 3 is nan"));
}

TEST(LiveChecks, NanThatCameInIsNoViolation) {
  Looked looked =
      looking(look_always({LiveCheck::kFinite, LiveCheck::kValueRange,
                           LiveCheck::kSingleKey, LiveCheck::kRecompute}));
  LiveCallData data("num_heads=2 seq_len=20 head_dim=8 mask=full");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  data.view(TensorRole::kValue).store_row(0, 1, 4, 0, 1, &nan);
  data.view(TensorRole::kValue).store_row(0, 0, 4, 0, 1, &nan);
  const AttentionCall call = data.call();
  ASSERT_TRUE(builtin("tiled").run(call).ok());
  EXPECT_EQ(looked.guard->observe(looked.layer, call).violations, 0)
      << looked.sink->text();
  const GuardCounters counters = looked.guard->counters();
  for (LiveCheck check :
       {LiveCheck::kFinite, LiveCheck::kValueRange, LiveCheck::kRecompute})
    EXPECT_EQ(counters.check(check).skipped_for(SkipReason::kInputNotFinite),
              1u)
        << live_check_id(check);
}

TEST(LiveChecks, OutputsOutsideOfVisibleValuesAreFound) {
  Looked looked = looking(look_always({LiveCheck::kValueRange}));
  LiveCallData data("seq_len=20 head_dim=8 mask=causal_bottom_right");
  const AttentionCall call = data.call();
  ASSERT_TRUE(builtin("tiled").run(call).ok());
  EXPECT_EQ(looked.guard->observe(looked.layer, call).violations, 0);
  // Within the range of all values, not within that of the first four.
  std::vector<double> row(8), best(8);
  double largest = -1;
  for (std::int64_t j = 4; j < 20; ++j) {
    call.value.load_row(0, 0, j, 0, 8, row.data());
    if (row[0] > largest) largest = row[0];
  }
  call.output.store_row(0, 0, 3, 0, 1, &largest);
  EXPECT_EQ(looked.guard->observe(looked.layer, call).violations, 1);
  EXPECT_THAT(looked.sink->text(), HasSubstr("query 3: output channel 0"));
}

TEST(LiveChecks, RowsOfOneKeyEqualItsValue) {
  Looked looked = looking(look_always({LiveCheck::kSingleKey}));
  LiveCallData data(
      "num_heads=2 seq_len=20 head_dim=8 mask=causal_bottom_right");
  const AttentionCall call = data.call();
  ASSERT_TRUE(builtin("tiled").run(call).ok());
  EXPECT_EQ(looked.guard->observe(looked.layer, call).violations, 0);
  std::vector<double> row(8);
  call.value.load_row(0, 1, 0, 0, 8, row.data());
  row[2] += 1e-5;
  call.output.store_row(0, 1, 0, 0, 8, row.data());
  EXPECT_EQ(looked.guard->observe(looked.layer, call).violations, 1);
  EXPECT_THAT(looked.sink->text(), HasSubstr("head 1, query 0"));
}

TEST(LiveChecks, RowMasksOfTheHostCount) {
  // The host's mask hides key 0; the problem line cannot say so.
  class HidesKeyZero final : public RowMask {
   public:
    void allowed(const RowPlace& row, KeyRanges& out) const override {
      out.clear();
      out.append(1, row.seq_len_kv);
    }
  } mask;
  Looked looked =
      looking(look_always({LiveCheck::kRecompute, LiveCheck::kValueRange}));
  LiveCallData data("num_heads=2 seq_len_q=3 seq_len_kv=9 head_dim=16");
  ObserveContext context;
  context.mask = &mask;
  ASSERT_TRUE(builtin("tiled").run(data.call()).ok());
  EXPECT_GT(
      looked.guard->observe(looked.layer, data.call(), context).violations, 0);
  Engine hiding = variant_engine(
      "hiding", "", {.allowed = [](const VariantRow& row, KeyRanges& keys) {
        keys.clear();
        keys.append(1, row.place.seq_len_kv);
      }});
  ASSERT_TRUE(hiding.run(data.call()).ok());
  EXPECT_EQ(
      looked.guard->observe(looked.layer, data.call(), context).violations, 0);
}

TEST(LiveChecks, LaterTokensThatMoveEarlierRowsAreFound) {
  std::string text;
  const GuardCounters counters =
      look(builtin("no_mask"),
           "num_heads=2 seq_len=24 head_dim=16 mask=causal_bottom_right",
           {LiveCheck::kLaterTokens}, &text, 3);
  EXPECT_GE(counters.check(LiveCheck::kLaterTokens).violations, 1u);
  EXPECT_THAT(text, HasSubstr("when tokens change that it must not see"));
}

TEST(LiveChecks, OtherEntriesThatMoveARowAreFound) {
  std::string text;
  look(defect_engine(*find_defect("next-entry-keys")),
       "batch=4 num_heads=2 seq_len_q=1 seq_len_kv=24 head_dim=16 "
       "mask=causal_bottom_right",
       {LiveCheck::kLaterTokens}, &text, 12);
  EXPECT_THAT(text, HasSubstr("later-tokens"));
}

TEST(LiveChecks, RowsThatDoNotSumToOneAreFound) {
  std::string text;
  look(builtin("wrong_axis"),
       "num_heads=2 seq_len=24 head_dim=16 mask=causal_bottom_right",
       {LiveCheck::kOnes}, &text);
  EXPECT_THAT(text, HasSubstr("weights sum to"));
}

TEST(LiveChecks, CanaryFindsADroppedKeyWhateverTheData) {
  std::string text;
  const GuardCounters counters =
      look(builtin("drops_last_key"),
           "num_heads=2 seq_len=300 head_dim=64 dtype=fp16 "
           "mask=causal_bottom_right",
           {LiveCheck::kCanary}, &text, 20);
  EXPECT_EQ(counters.canary.finished, 1u);
  EXPECT_EQ(counters.check(LiveCheck::kCanary).violations, 1u);
  EXPECT_THAT(text, HasSubstr("does not see key"));
}

TEST(LiveChecks, CanaryRunsOnceForEachClassOfShapes) {
  Looked looked = looking(look_always({LiveCheck::kCanary}));
  const AttentionCallback guarded =
      looked.guard->wrap(builtin("tiled").run, looked.layer);
  for (const char* line : {"seq_len=40 head_dim=16 mask=causal_bottom_right",
                           "seq_len=41 head_dim=16 mask=causal_bottom_right",
                           "seq_len=90 head_dim=16 mask=causal_bottom_right",
                           "seq_len=40 head_dim=32 mask=causal_bottom_right"}) {
    LiveCallData data(line);
    for (int n = 0; n < 20; ++n) ASSERT_TRUE(guarded(data.call()).ok());
  }
  EXPECT_EQ(looked.guard->counters().canary.shape_classes, 3u);
  EXPECT_EQ(looked.guard->counters().canary.finished, 3u);
}

TEST(LiveChecks, EveryRowIsMetAndEdgesMoreOften) {
  // A fault in one row is found whichever row it is.
  for (std::int64_t query : {0, 1, 16, 40, 63, 64, 77, 99}) {
    Looked looked = looking(look_always({LiveCheck::kRecompute}));
    LiveCallData data("seq_len=100 head_dim=8 mask=full");
    const AttentionCall call = data.call();
    ASSERT_TRUE(builtin("tiled").run(call).ok());
    double value = 5;
    call.output.store_row(0, 0, query, 0, 1, &value);
    int looks = 0;
    while (looked.sink->records().empty() && looks < 200) {
      looked.guard->observe(looked.layer, call);
      ++looks;
    }
    EXPECT_LT(looks, 100) << query;
  }
}

TEST(LiveChecks, CallsThatCannotBeJudgedAreCounted) {
  Looked looked = looking(look_always({LiveCheck::kRecompute}));
  LiveCallData data("num_heads=4 seq_len=8 head_dim=8");
  AttentionCall call = data.call();
  call.key.shape[2] = 4;  // Shorter than the problem says.
  EXPECT_EQ(looked.guard->observe(looked.layer, call).checks, 0);
  EXPECT_EQ(looked.guard->observe(looked.layer, AttentionCall{}).checks, 0);
  call = data.call();
  call.value.data = nullptr;
  EXPECT_EQ(looked.guard->observe(looked.layer, call).checks, 0);
  EXPECT_EQ(looked.guard->counters()
                .check(LiveCheck::kRecompute)
                .skipped_for(SkipReason::kUnsupported),
            3u);
}

TEST(LiveChecks, FallbackReplacesTheOutput) {
  RuntimePolicy policy = look_always({LiveCheck::kRecompute});
  policy.patches[0].check_actions[LiveCheck::kRecompute] = kActionFallback;
  Looked looked = looking(policy);
  LiveCallData data("num_heads=2 seq_len=24 head_dim=16 mask=full");
  LiveCallData right("num_heads=2 seq_len=24 head_dim=16 mask=full");
  ASSERT_TRUE(builtin("reference").run(right.call()).ok());
  const AttentionCallback guarded =
      looked.guard->wrap(builtin("wrong_scale").run, looked.layer);
  ASSERT_TRUE(guarded(data.call()).ok());
  EXPECT_EQ(looked.guard->counters().fallbacks, 1u);
  std::vector<double> a(16), b(16);
  for (std::int64_t i = 0; i < 24; ++i) {
    data.call().output.load_row(0, 1, i, 0, 16, a.data());
    right.call().output.load_row(0, 1, i, 0, 16, b.data());
    EXPECT_EQ(a, b) << i;
  }
}

TEST(LiveChecks, ThrowThrows) {
  RuntimePolicy policy = look_always({LiveCheck::kRecompute});
  policy.patches[0].severity_actions[Severity::kError] = kActionThrow;
  Looked looked = looking(policy);
  LiveCallData data("num_heads=2 seq_len=24 head_dim=16 mask=full");
  const AttentionCallback guarded =
      looked.guard->wrap(builtin("wrong_scale").run, looked.layer);
  EXPECT_THROW(static_cast<void>(guarded(data.call())), ViolationError);
}

}  // namespace
}  // namespace attnguard
