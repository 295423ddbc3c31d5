#include "guard/runtime/actions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <stdexcept>

#include "guard/runtime/dump_file.h"
#include "tests/runtime/live_tensors.h"

namespace attnguard {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(RateLimit, LetsABurstThroughAndThenTheRate) {
  RateLimit limit(6);  // One in ten seconds.
  int passed = 0;
  for (int n = 0; n < 100; ++n) passed += limit.admit(0);
  EXPECT_EQ(passed, 6);
  EXPECT_FALSE(limit.admit(9 * kSecond));
  EXPECT_TRUE(limit.admit(10 * kSecond));
  EXPECT_FALSE(limit.admit(10 * kSecond));
  // After a long time there is a whole burst again, and no more.
  passed = 0;
  for (int n = 0; n < 100; ++n) passed += limit.admit(10'000 * kSecond);
  EXPECT_EQ(passed, 6);
}

TEST(RateLimit, HoldsAtTheEdges) {
  RateLimit none(0);
  EXPECT_FALSE(none.admit(0));
  RateLimit seldom(0.5);
  EXPECT_TRUE(seldom.admit(0));
  EXPECT_FALSE(seldom.admit(119 * kSecond));
  EXPECT_TRUE(seldom.admit(120 * kSecond));
  RateLimit all(1e300);
  for (int n = 0; n < 1000; ++n) EXPECT_TRUE(all.admit(n));
}

struct Heard {
  std::vector<std::string> lines;
  int callbacks = 0;

  ActionHooks hooks() {
    return {.log = [this](std::string_view line) { lines.emplace_back(line); },
            .callback = [this](const Violation&) { ++callbacks; }};
  }
};

TEST(ActionSink, DoesWhatIsAskedAndNothingElse) {
  LiveTensors tensors("seq_len=4 head_dim=8 mask=full");
  for (ActionSet actions :
       {ActionSet{kActionCount}, ActionSet{kActionLog},
        ActionSet{kActionCallback}, kActionLog | kActionCallback,
        ActionSet{kActionThrow}, ActionSet{kActionFallback}}) {
    Heard heard;
    RuntimePolicy policy;
    policy.dump.folder = testing::TempDir() + "never-made";
    ActionSink sink(policy, "x", heard.hooks());
    const TestViolation violation(tensors, 0, 0, 1, actions);
    sink.on_violation(violation.violation);
    EXPECT_EQ(heard.lines.size(), (actions & kActionLog) != 0 ? 1u : 0u);
    EXPECT_EQ(heard.callbacks, (actions & kActionCallback) != 0 ? 1 : 0);
    EXPECT_EQ(sink.counters().dumps.written, 0u);
    EXPECT_FALSE(std::filesystem::exists(policy.dump.folder));
  }
}

TEST(ActionSink, CountsTheLinesThatItLeavesOut) {
  LiveTensors tensors("seq_len=4 head_dim=8 mask=full");
  Heard heard;
  RuntimePolicy policy;
  policy.log_per_minute = 3;
  ActionSink sink(policy, "x", heard.hooks());
  const TestViolation violation(tensors, 0, 0, 1, kActionLog);
  for (int n = 0; n < 100; ++n) sink.on_violation(violation.violation);
  EXPECT_EQ(heard.lines.size(), 3u);
  EXPECT_EQ(sink.counters().log_lines, 3u);
  EXPECT_EQ(sink.counters().log_suppressed, 97u);
  EXPECT_THAT(heard.lines[0], HasSubstr("blk.7.attn"));
  EXPECT_THAT(heard.lines[0], HasSubstr("recompute"));
}

TEST(ActionSink, CountsWhatNobodyHears) {
  LiveTensors tensors("seq_len=4 head_dim=8 mask=full");
  ActionSink sink(RuntimePolicy{}, "x");
  const TestViolation violation(tensors, 0, 0, 1, kActionLog | kActionCallback);
  sink.on_violation(violation.violation);
  EXPECT_EQ(sink.counters().log_unheard, 1u);
  EXPECT_EQ(sink.counters().callback_missing, 1u);
}

TEST(ActionSink, SurvivesHooksThatThrow) {
  LiveTensors tensors("seq_len=4 head_dim=8 mask=full");
  ActionSink sink(
      RuntimePolicy{}, "x",
      {.log = [](std::string_view) { throw std::runtime_error("log"); },
       .callback = [](const Violation&) { throw 1; }});
  const TestViolation violation(tensors, 0, 0, 1, kActionLog | kActionCallback);
  sink.on_violation(violation.violation);
  EXPECT_EQ(sink.counters().hook_failures, 2u);
}

// The file that explains an abort is there when the process is gone.
TEST(ActionSinkDeathTest, AbortsAfterTheDumpIsOnDisk) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string folder = testing::TempDir() + "attnguard-abort";
  std::filesystem::remove_all(folder);
  EXPECT_EXIT(
      {
        LiveTensors tensors("seq_len=4 head_dim=8 mask=full");
        RuntimePolicy policy;
        policy.dump.folder = folder;
        ActionSink sink(policy, "x");
        const TestViolation violation(tensors, 0, 0, 1,
                                      kActionDump | kActionAbort);
        sink.on_violation(violation.violation);
      },
      testing::KilledBySignal(SIGABRT), "");
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    ++files;
    EXPECT_TRUE(Dump::load(entry.path().string()).ok());
  }
  EXPECT_EQ(files, 1);
  std::filesystem::remove_all(folder);
}

TEST(ActionSink, CountsAnewInTheChildOfAFork) {
  LiveTensors tensors("seq_len=4 head_dim=8 mask=full");
  RuntimePolicy policy;
  policy.log_per_minute = 1;
  Heard heard;
  ActionSink sink(policy, "x", heard.hooks());
  const TestViolation violation(tensors, 0, 0, 2, kActionLog | kActionCallback);
  for (int n = 0; n < 3; ++n) sink.on_violation(violation.violation);
  ASSERT_EQ(sink.counters().log_lines, 1u);
  ASSERT_EQ(sink.counters().log_suppressed, 2u);
  // What the guard calls in the child.
  sink.after_fork_in_child();
  EXPECT_EQ(sink.counters().log_lines, 0u);
  EXPECT_EQ(sink.counters().log_suppressed, 0u);
  EXPECT_EQ(sink.counters().callbacks, 0u);
  sink.on_violation(violation.violation);
  EXPECT_EQ(sink.counters().callbacks, 1u);
}

}  // namespace
}  // namespace attnguard
