// A call that was kept is judged again, and run again on engines.
#include "guard/runtime/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "guard/runtime/rerun.h"
#include "tests/runtime/live_tensors.h"
#include "tests/support/engines.h"

namespace attnguard {
namespace {

using ::testing::HasSubstr;

Deadline soon() {
  return std::chrono::steady_clock::now() + std::chrono::seconds(60);
}

JudgedCall judged(LiveTensors& tensors) {
  return {.problem = &tensors.problem(),
          .scope = whole_call(tensors.problem()),
          .query = tensors.view(TensorRole::kQuery),
          .key = tensors.view(TensorRole::kKey),
          .value = tensors.view(TensorRole::kValue),
          .output = tensors.view(TensorRole::kOutput),
          .numerics = default_numerics(tensors.problem()),
          .allowed = {}};
}

const CheckResult& check_named(const Rejudged& result, std::string_view id) {
  static const CheckResult kNone;
  for (const CheckResult& check : result.checks)
    if (check.check == id) return check;
  ADD_FAILURE() << id;
  return kNone;
}

constexpr const char* kLines[] = {
    "batch=2 num_heads=4 num_kv_heads=2 seq_len=17 head_dim=16 "
    "mask=causal_bottom_right",
    "batch=2 num_heads=2 seq_len_q=3,4 seq_len_kv=5,9 head_dim=8 dtype=bf16 "
    "mask=causal_bottom_right packed=true",
    "batch=2 num_heads=2 num_kv_heads=1 seq_len_q=1 seq_len_kv=9,20 "
    "head_dim=8 dtype=fp16 mask=causal_bottom_right block_size=4",
    "num_heads=2 seq_len=12 head_dim=8 mask=causal_bottom_right sinks=0.5 "
    "softcap=20",
    "num_heads=4 seq_len=12 head_dim=8 mask=causal_bottom_right "
    "alibi_max_bias=8",
};

TEST(Replay, PassesARightCallOnEveryLayout) {
  for (const char* line : kLines) {
    LiveTensors tensors(line);
    const Rejudged result = judge_call(judged(tensors), {}, soon());
    EXPECT_EQ(result.verdict, Verdict::kPass)
        << line << '\n'
        << (result.first() ? result.first()->message : "");
    EXPECT_EQ(result.rows, result.of_rows);
  }
}

TEST(Replay, FindsTheOneRowThatIsWrong) {
  for (const char* line : kLines) {
    SCOPED_TRACE(line);
    LiveTensors tensors(line);
    const Problem& p = tensors.problem();
    const std::int64_t b = p.batch - 1, h = p.num_heads - 1;
    const std::int64_t i = p.len_q(b) - 1;
    double was = 0;
    tensors.view(TensorRole::kOutput).load_row(b, h, i, 0, 1, &was);
    tensors.set_output(b, h, i, was + 0.3);
    const Rejudged result = judge_call(judged(tensors), {}, soon());
    EXPECT_EQ(result.verdict, Verdict::kViolation);
    const CheckResult& recompute = check_named(result, "recompute");
    ASSERT_EQ(recompute.num_findings, 1);
    EXPECT_EQ(recompute.findings[0].batch, b);
    EXPECT_EQ(recompute.findings[0].head, h);
    EXPECT_EQ(recompute.findings[0].query, i);
  }
}

TEST(Replay, TellsTheChecksApart) {
  LiveTensors tensors("seq_len=6 head_dim=8 mask=causal_bottom_right");
  tensors.set_output(0, 0, 0, 0.5);  // Row 0 sees one key.
  tensors.set_output(0, 0, 2, 1e3);  // Outside of the values.
  tensors.set_output(0, 0, 4, NAN);
  const Rejudged result = judge_call(judged(tensors), {}, soon());
  EXPECT_EQ(check_named(result, "finite").num_findings, 1);
  EXPECT_EQ(check_named(result, "finite").findings[0].query, 4);
  EXPECT_EQ(check_named(result, "single-key").num_findings, 1);
  EXPECT_EQ(check_named(result, "recompute").num_findings, 3);
  EXPECT_GE(check_named(result, "value-range").num_findings, 2);
}

TEST(Replay, InputsThatAreNotFiniteProveNothing) {
  LiveTensors tensors("seq_len=6 head_dim=8 mask=causal_bottom_right");
  const double nan = NAN;
  tensors.view(TensorRole::kKey).store_row(0, 0, 4, 0, 1, &nan);
  tensors.attend();
  const Rejudged result = judge_call(judged(tensors), {}, soon());
  EXPECT_EQ(result.verdict, Verdict::kPass);
  EXPECT_EQ(result.not_finite, 2);
  EXPECT_EQ(result.rows, 4);
}

TEST(Replay, NoRowIsNoEvidence) {
  LiveTensors tensors("seq_len=6 head_dim=8 mask=causal_bottom_right");
  JudgedCall call = judged(tensors);
  call.allowed = [](std::int64_t, std::int64_t, KeyRanges& keys) {
    keys.clear();
  };
  // Rows without keys must be zero, and these are not.
  EXPECT_EQ(judge_call(call, {}, soon()).verdict, Verdict::kViolation);
  LiveTensors any("seq_len=6 head_dim=8 mask=full empty_row=any");
  call = judged(any);
  call.allowed = [](std::int64_t, std::int64_t, KeyRanges& keys) {
    keys.clear();
  };
  const Rejudged result = judge_call(call, {}, soon());
  EXPECT_EQ(result.verdict, Verdict::kInconclusive);
  EXPECT_EQ(result.without_keys, 6);
}

TEST(Replay, JudgesWhatWasFoundFirstWhenThereIsNoTime) {
  LiveTensors tensors("num_heads=4 seq_len=64 head_dim=8 mask=full");
  tensors.set_output(0, 3, 60, 9);
  const Finding recorded{.batch = 0, .head = 3, .query = 60};
  const Rejudged result =
      judge_call(judged(tensors), {recorded}, Deadline::min());
  EXPECT_EQ(result.rows, 1);
  EXPECT_EQ(result.verdict, Verdict::kViolation);
}

TEST(Rerun, PassesARightEngineOnTheKeptInputs) {
  for (const char* line : kLines) {
    LiveTensors tensors(line);
    const JudgedCall call = judged(tensors);
    const Result<Rerun> run =
        rerun(builtin("tiled"), call, runnable_part(call), soon());
    if (!run.ok() && run.status().code() == StatusCode::kUnsupported) continue;
    ASSERT_TRUE(run.ok()) << line << run.status().message();
    EXPECT_EQ(run.value().judged.verdict, Verdict::kPass)
        << line << '\n'
        << (run.value().judged.first() ? run.value().judged.first()->message
                                       : "");
    EXPECT_TRUE(run.value().memory_faults.empty());
  }
}

TEST(Rerun, ShrinksToTheSmallestFailingCase) {
  LiveTensors tensors(
      "batch=2 num_heads=4 num_kv_heads=2 seq_len=24 head_dim=16 "
      "mask=causal_bottom_right");
  const JudgedCall call = judged(tensors);
  const Engine engine = builtin("wrong_axis");
  Result<Rerun> run = rerun(engine, call, runnable_part(call), soon());
  ASSERT_TRUE(run.ok()) << run.status().message();
  ASSERT_EQ(run.value().judged.verdict, Verdict::kViolation);
  const Shrunk shrunk = shrink(engine, call, std::move(run.value()), soon());
  EXPECT_TRUE(shrunk.finished);
  const Problem& smallest = shrunk.smallest.part.problem;
  EXPECT_EQ(smallest.batch, 1);
  EXPECT_EQ(smallest.num_heads, 1);
  // A column softmax needs two queries that share a key, or a row with two
  // keys: there is nothing smaller than one query and two keys.
  EXPECT_LE(smallest.max_len_q(), 2);
  EXPECT_LE(smallest.max_len_kv(), 2);
  EXPECT_EQ(shrunk.smallest.judged.verdict, Verdict::kViolation);
}

TEST(Rerun, StopsShrinkingWhenTheTimeIsOver) {
  LiveTensors tensors("num_heads=4 seq_len=24 head_dim=16 mask=full");
  const JudgedCall call = judged(tensors);
  const Engine engine = builtin("wrong_axis");
  Result<Rerun> run = rerun(engine, call, runnable_part(call), soon());
  ASSERT_TRUE(run.ok());
  const Shrunk shrunk =
      shrink(engine, call, std::move(run.value()), Deadline::min());
  EXPECT_FALSE(shrunk.finished);
  EXPECT_EQ(shrunk.tried, 0);
  EXPECT_EQ(shrunk.smallest.judged.verdict, Verdict::kViolation);
}

TEST(Rerun, OfACutCallRunsTheKeptEntriesAndHeads) {
  LiveTensors tensors(
      "batch=3 num_heads=4 num_kv_heads=2 seq_len=8 head_dim=8 mask=full");
  JudgedCall call = judged(tensors);
  call.scope.batch = {1, 1};
  call.scope.heads = {2, 2};
  call.scope.kv_heads = {1, 1};
  const CutCall part = runnable_part(call);
  EXPECT_EQ(part.problem.batch, 1);
  EXPECT_EQ(part.problem.num_heads, 2);
  const Result<Rerun> run = rerun(builtin("tiled"), call, part, soon());
  ASSERT_TRUE(run.ok()) << run.status().message();
  EXPECT_EQ(run.value().judged.verdict, Verdict::kPass);
  EXPECT_EQ(run.value().judged.rows, 16);
}

TEST(Rerun, SaysWhyAnEngineCannotOrDoesNotRun) {
  LiveTensors tensors("seq_len=8 head_dim=8 mask=full");
  const JudgedCall call = judged(tensors);
  Engine engine = builtin("tiled");
  engine.run = [](const AttentionCall&) -> Status {
    return {StatusCode::kEngineFailure, "out of order"};
  };
  EXPECT_THAT(
      rerun(engine, call, runnable_part(call), soon()).status().message(),
      HasSubstr("out of order"));
  engine.capabilities.unsupported = [](const Problem&) { return "not today"; };
  const Status status =
      rerun(engine, call, runnable_part(call), soon()).status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("not today"));
}

}  // namespace
}  // namespace attnguard
