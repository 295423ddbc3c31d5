// The guard, its actions, the file they leave and the replay, together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "guard/policy/runtime_options.h"
#include "guard/runtime/actions.h"
#include "guard/runtime/dump_file.h"
#include "guard/runtime/guard.h"
#include "guard/runtime/metrics.h"
#include "guard/runtime/replay.h"
#include "tests/runtime/live_tensors.h"
#include "tests/support/engines.h"

namespace attnguard {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr const char* kActionsLine =
    "batch=2 num_heads=4 num_kv_heads=2 seq_len=20 head_dim=16 "
    "mask=causal_bottom_right";

class GuardActions : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "attnguard-guard-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Every call is looked at, whatever it costs; the canary is silent.
  void start(const std::string& options) {
    RuntimePolicy policy;
    const RuntimeOptionsParse parse = apply_runtime_options(
        "sample=1:max_overhead=none:canary=off:shadow=0:rows=64:dump_dir='" +
            folder_ + "':" + options,
        policy);
    ASSERT_TRUE(parse.ok()) << parse.errors.front();
    sink_ = std::make_shared<ActionSink>(
        policy, "builtin:wrong_axis",
        ActionHooks{.log = [this](std::string_view line) {
          lines_.emplace_back(line);
        }});
    auto guard = Guard::create(policy, {.sink = sink_});
    ASSERT_TRUE(guard.ok()) << guard.status().message();
    guard_ = std::move(guard.value());
  }

  std::vector<std::string> files() const {
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(folder_))
      files.push_back(entry.path().string());
    return files;
  }

  std::string folder_;
  std::vector<std::string> lines_;
  std::shared_ptr<ActionSink> sink_;
  std::unique_ptr<Guard> guard_;
};

TEST_F(GuardActions, AWrongKernelLeavesAFileThatSaysTheSame) {
  start("on_violation=dump,log:finite=off:value-range=off:single-key=off");
  LiveTensors tensors(kActionsLine);
  const AttentionCall call = tensors.call();
  const AttentionCallback wrapped =
      guard_->wrap(builtin("wrong_axis").run, guard_->layer("blk.3.attn"));
  ASSERT_TRUE(wrapped(call).ok());
  ASSERT_TRUE(sink_->flush(std::chrono::seconds(30)));
  ASSERT_EQ(files().size(), 1u);
  const Result<Dump> dump = Dump::load(files()[0]);
  ASSERT_TRUE(dump.ok()) << dump.status().message();
  const DumpRecord& record = dump.value().record();
  EXPECT_EQ(record.layer, "blk.3.attn");
  EXPECT_EQ(record.check, "recompute");
  ASSERT_FALSE(record.findings.empty());

  const Rejudged again =
      judge_call(judged_call(dump.value()), record.findings,
                 std::chrono::steady_clock::now() + std::chrono::seconds(60));
  EXPECT_EQ(again.verdict, Verdict::kViolation);
  for (const Finding& live : record.findings) {
    bool same = false;
    for (const CheckResult& check : again.checks)
      for (const Finding& found : check.findings)
        same |= check.check == "recompute" && found.batch == live.batch &&
                found.head == live.head && found.query == live.query &&
                found.channel == live.channel &&
                found.observed == live.observed &&
                found.expected == live.expected && found.bound == live.bound;
    EXPECT_TRUE(same || again.checks.back().num_findings > 50) << live.message;
  }
  ASSERT_FALSE(lines_.empty());
  EXPECT_THAT(lines_[0], HasSubstr("blk.3.attn: recompute: batch "));
}

TEST_F(GuardActions, ARightKernelLeavesNothing) {
  start("on_violation=dump,log,throw");
  LiveTensors tensors(kActionsLine);
  const AttentionCall call = tensors.call();
  const AttentionCallback wrapped =
      guard_->wrap(builtin("tiled").run, guard_->layer("blk.3.attn"));
  for (int n = 0; n < 20; ++n) ASSERT_TRUE(wrapped(call).ok());
  EXPECT_TRUE(sink_->flush(std::chrono::seconds(30)));
  EXPECT_TRUE(files().empty());
  EXPECT_TRUE(lines_.empty()) << lines_[0];
  EXPECT_GE(guard_->counters().check(LiveCheck::kRecompute).runs, 20u);
}

TEST_F(GuardActions, ThrowsOnlyFromAWrappedKernel) {
  start("on_violation=throw");
  LiveTensors tensors(kActionsLine);
  const AttentionCall call = tensors.call();
  const LayerHandle layer = guard_->layer("blk.3.attn");
  const AttentionCallback wrapped =
      guard_->wrap(builtin("wrong_axis").run, layer);
  EXPECT_THROW((void)wrapped(call), ViolationError);
  EXPECT_NE(guard_->observe(layer, call).actions & kActionThrow, 0u);
}

TEST_F(GuardActions, FallsBackToTheReference) {
  start("on_violation=fallback");
  LiveTensors tensors(kActionsLine);
  const AttentionCall call = tensors.call();
  const AttentionCallback wrapped =
      guard_->wrap(builtin("wrong_axis").run, guard_->layer("blk.3.attn"));
  ASSERT_TRUE(wrapped(call).ok());
  EXPECT_EQ(guard_->counters().fallbacks, 1u);
  const JudgedCall judged = {.problem = &tensors.problem(),
                             .scope = whole_call(tensors.problem()),
                             .query = call.query,
                             .key = call.key,
                             .value = call.value,
                             .output = call.output,
                             .numerics = default_numerics(tensors.problem()),
                             .allowed = {}};
  EXPECT_EQ(
      judge_call(judged, {},
                 std::chrono::steady_clock::now() + std::chrono::seconds(60))
          .verdict,
      Verdict::kPass);
}

TEST_F(GuardActions, CountsInTheMetrics) {
  start("on_violation=count");
  LiveTensors tensors(kActionsLine);
  const AttentionCall call = tensors.call();
  const AttentionCallback wrapped =
      guard_->wrap(builtin("wrong_axis").run, guard_->layer("blk.3.attn"));
  for (int n = 0; n < 3; ++n) ASSERT_TRUE(wrapped(call).ok());
  const ActionCounters actions = sink_->counters();
  const std::string page =
      prometheus_text(guard_metrics(guard_->counters(), &actions));
  EXPECT_THAT(page, HasSubstr("attnguard_calls_total 3\n"));
  EXPECT_THAT(page, HasSubstr("attnguard_violations_total{check=\"recompute\","
                              "layer_group=\"blk.*.attn\"} 3\n"));
}

}  // namespace
}  // namespace attnguard
