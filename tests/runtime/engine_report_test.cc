// What others find in an engine and report: counted, logged, dumped and acted
// on like what the guard finds itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <thread>
#include <vector>

#include "guard/policy/runtime_options.h"
#include "guard/runtime/actions.h"
#include "guard/runtime/dump_file.h"
#include "guard/runtime/guard.h"
#include "guard/runtime/metrics.h"
#include "guard/runtime/replay.h"
#include "tests/runtime/dump_folder.h"
#include "tests/runtime/live_tensors.h"
#include "tests/runtime/recording_sink.h"

namespace attnguard {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Finding stale_cell() {
  Finding finding;
  finding.kind = FindingKind::kOverwrite;
  finding.message = "sequence 0, position 4: cell 4 is stale";
  return finding;
}

EngineReport cell_report(const std::vector<Finding>& findings) {
  EngineReport report;
  report.check = "cache-cell";
  report.findings = findings;
  report.text = "graph 3\nrow 0: sequence 0";
  return report;
}

class EngineReports : public testing::Test {
 protected:
  // No call is sampled: only reports are told.
  void start(const std::string& options) {
    RuntimePolicy policy;
    const RuntimeOptionsParse parse = apply_runtime_options(
        "sample=0:dump_dir='" + folder_.path() + "':" + options, policy);
    ASSERT_TRUE(parse.ok()) << parse.errors.front();
    sink_ = std::make_shared<ActionSink>(
        policy, "my engine",
        ActionHooks{.log = log_.function(),
                    .callback = [this](const Violation& violation) {
                      EXPECT_EQ(violation.check, LiveCheck::kEngine);
                      severities_.push_back(violation.severity);
                    }});
    auto guard = Guard::create(policy, {.sink = sink_});
    ASSERT_TRUE(guard.ok()) << guard.status().message();
    guard_ = std::move(guard.value());
    layer_ = guard_->layer("blk.7.attn");
  }

  Observed report() { return guard_->report(layer_, cell_report(findings_)); }

  const CheckCounters counted() const {
    return guard_->counters().check(LiveCheck::kEngine);
  }

  Result<Dump> only_dump() {
    EXPECT_TRUE(sink_->flush(kLong));
    const std::vector<std::string> files = folder_.files();
    EXPECT_EQ(files.size(), 1u);
    if (files.empty()) return Status(StatusCode::kNotFound, "no file");
    return Dump::load(files[0]);
  }

  DumpFolder folder_;
  HeardLog log_;
  std::vector<Severity> severities_;
  std::vector<Finding> findings_ = {stale_cell()};
  std::shared_ptr<ActionSink> sink_;
  std::unique_ptr<Guard> guard_;
  LayerHandle layer_;
};

TEST_F(EngineReports, AreCountedUnderTheirOwnCheck) {
  start("on_violation=count");
  EngineReport many = cell_report(findings_);
  many.num_findings = 17;
  EXPECT_EQ(guard_->report(layer_, many).violations, 1);
  EXPECT_EQ(report().violations, 1);
  EXPECT_EQ(counted().runs, 2u);
  EXPECT_EQ(counted().violations, 2u);
  EXPECT_EQ(counted().findings, 18u);
  const std::string page = prometheus_text(guard_metrics(guard_->counters()));
  EXPECT_THAT(page, HasSubstr("attnguard_violations_total{check=\"engine\","
                              "layer_group=\"blk.*.attn\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("attnguard_findings_total{check=\"engine\"} 18"));
  EXPECT_TRUE(log_.lines().empty());
  EXPECT_TRUE(folder_.files().empty());
}

TEST_F(EngineReports, NothingFoundIsNothingDone) {
  start("on_violation=log,dump");
  findings_.clear();
  const Observed seen = report();
  EXPECT_EQ(seen.checks, 0);
  EXPECT_EQ(seen.violations, 0);
  EXPECT_EQ(seen.actions, 0u);
  findings_ = {stale_cell()};
  EXPECT_EQ(guard_->report({12345}, cell_report(findings_)).violations, 0);
  EXPECT_EQ(counted().runs, 0u);
  EXPECT_TRUE(log_.lines().empty());
}

TEST_F(EngineReports, AreLoggedAtTheSameRateAsAllElse) {
  start("on_violation=log:log_per_minute=2");
  for (int n = 0; n < 20; ++n) report();
  EXPECT_THAT(log_.lines(),
              ElementsAre("attnguard: blk.7.attn: engine: cache-cell: sequence "
                          "0, position 4: cell 4 is stale",
                          HasSubstr("blk.7.attn: engine: cache-cell: ")));
  EXPECT_EQ(sink_->counters().log_lines, 2u);
  EXPECT_EQ(sink_->counters().log_suppressed, 18u);
  EXPECT_EQ(counted().violations, 20u);
}

TEST_F(EngineReports, LeaveADumpWithoutTensors) {
  start("on_violation=dump");
  EngineReport report = cell_report(findings_);
  report.num_findings = 3;
  guard_->report(layer_, report);
  const Result<Dump> dump = only_dump();
  ASSERT_TRUE(dump.ok()) << dump.status().message();
  EXPECT_THAT(folder_.files().at(0),
              HasSubstr("-blk.7.attn-engine-cache-cell.safetensors"));
  const DumpRecord& record = dump.value().record();
  EXPECT_FALSE(record.has_tensors);
  EXPECT_EQ(record.engine, "my engine");
  EXPECT_EQ(record.layer, "blk.7.attn");
  EXPECT_EQ(record.check, "engine");
  EXPECT_EQ(record.engine_check, "cache-cell");
  EXPECT_EQ(record.engine_text, "graph 3\nrow 0: sequence 0");
  EXPECT_EQ(record.severity, "error");
  EXPECT_EQ(record.num_findings, 3);
  EXPECT_EQ(record.call_number, 1u);
  ASSERT_EQ(record.findings.size(), 1u);
  EXPECT_EQ(record.findings[0].kind, FindingKind::kOverwrite);
  EXPECT_EQ(record.findings[0].message, findings_[0].message);
  EXPECT_EQ(dump.value().query().data, nullptr);
  EXPECT_EQ(dump.value().output().data, nullptr);
  // Never a pass: nothing was judged.
  const Rejudged judged = judge_call(judged_call(dump.value()), record.findings,
                                     std::chrono::steady_clock::now() + kLong);
  EXPECT_EQ(judged.verdict, Verdict::kInconclusive);
  EXPECT_EQ(judged.of_rows, 0);
}

TEST_F(EngineReports, LeaveADumpWithTheTensorsOfTheirCall) {
  start("on_violation=dump");
  LiveTensors tensors("num_heads=2 seq_len=6 head_dim=8 mask=full");
  tensors.set_output(0, 1, 3, 9);
  const AttentionCall call = tensors.call();
  findings_[0].batch = 0;
  findings_[0].query = 3;
  EngineReport report = cell_report(findings_);
  report.call = &call;
  guard_->report(layer_, report);
  const Result<Dump> dump = only_dump();
  ASSERT_TRUE(dump.ok()) << dump.status().message();
  const DumpRecord& record = dump.value().record();
  EXPECT_TRUE(record.has_tensors);
  EXPECT_EQ(record.problem, tensors.problem());
  EXPECT_EQ(record.check, "engine");
  EXPECT_EQ(record.engine_text, "graph 3\nrow 0: sequence 0");
  const Rejudged judged = judge_call(judged_call(dump.value()), record.findings,
                                     std::chrono::steady_clock::now() + kLong);
  EXPECT_EQ(judged.verdict, Verdict::kViolation);
  EXPECT_EQ(judged.of_rows, 12);
}

// What rows see as the host says it, not as the problem does.
TEST_F(EngineReports, KeepTheMaskOfTheirContext) {
  class OnlyKeyTwo final : public RowMask {
    void allowed(const RowPlace&, KeyRanges& out) const override {
      out.clear();
      out.append(2, 3);
    }
  };
  start("on_violation=dump");
  LiveTensors tensors("seq_len=4 head_dim=8 mask=full");
  const AttentionCall call = tensors.call();
  const OnlyKeyTwo mask;
  ObserveContext context;
  context.mask = &mask;
  EngineReport report = cell_report(findings_);
  report.call = &call;
  report.context = &context;
  guard_->report(layer_, report);
  const Result<Dump> dump = only_dump();
  ASSERT_TRUE(dump.ok()) << dump.status().message();
  KeyRanges keys;
  dump.value().allowed(0, 3, keys);
  EXPECT_THAT(keys.ranges(), ElementsAre(KeyRange{2, 3}));
}

// A call that cannot be read must not be: the rest is kept all the same.
TEST_F(EngineReports, ACallThatCannotBeReadLeavesADumpWithoutTensors) {
  start("on_violation=dump");
  LiveTensors tensors("seq_len=4 head_dim=8 mask=full");
  AttentionCall call = tensors.call();
  call.key.data = nullptr;
  EngineReport report = cell_report(findings_);
  report.call = &call;
  EXPECT_EQ(guard_->report(layer_, report).violations, 1);
  const Result<Dump> dump = only_dump();
  ASSERT_TRUE(dump.ok()) << dump.status().message();
  EXPECT_FALSE(dump.value().record().has_tensors);
}

TEST_F(EngineReports, LongTextsAreCut) {
  start("on_violation=dump");
  const std::string text(3 * EngineReport::kMostText, 'x');
  EngineReport report = cell_report(findings_);
  report.text = text;
  guard_->report(layer_, report);
  const Result<Dump> dump = only_dump();
  ASSERT_TRUE(dump.ok()) << dump.status().message();
  EXPECT_EQ(dump.value().record().engine_text.size(), EngineReport::kMostText);
}

TEST_F(EngineReports, EachOfTheReportersChecksGetsAFile) {
  start("on_violation=dump:dump_max_files=4");
  EngineReport mask = cell_report(findings_);
  mask.check = "mask";
  for (int n = 0; n < 10; ++n) {
    report();
    ASSERT_TRUE(sink_->flush(kLong));
  }
  EXPECT_EQ(folder_.files().size(), 2u);
  guard_->report(layer_, mask);
  ASSERT_TRUE(sink_->flush(kLong));
  EXPECT_EQ(folder_.files().size(), 3u);
  EXPECT_EQ(sink_->counters().dumps.written, 3u);
  EXPECT_EQ(sink_->counters().dumps.dropped_limit, 8u);
}

TEST_F(EngineReports, ThrowIsLeftToTheCaller) {
  start("on_violation=throw");
  const Observed seen = report();
  EXPECT_NE(seen.actions & kActionThrow, 0u);
}

TEST_F(EngineReports, FallbackDoesNotApply) {
  start("on_engine=fallback,log");
  LiveTensors tensors("seq_len=4 head_dim=8 mask=full");
  tensors.set_output(0, 0, 2, 9);
  const AttentionCall call = tensors.call();
  EngineReport report = cell_report(findings_);
  report.call = &call;
  const Observed seen = guard_->report(layer_, report);
  EXPECT_EQ(seen.actions & kActionFallback, 0u);
  EXPECT_NE(seen.actions & kActionLog, 0u);
  EXPECT_FALSE(seen.fell_back);
  EXPECT_EQ(guard_->counters().fallbacks, 0u);
  double value = 0;
  call.output.load_row(0, 0, 2, 0, 1, &value);
  EXPECT_EQ(value, 9);
}

TEST_F(EngineReports, FollowTheirSeverity) {
  start("engine=warning:on_error=log,dump:on_warning=callback");
  report();
  EXPECT_THAT(severities_, ElementsAre(Severity::kWarning));
  EXPECT_TRUE(log_.lines().empty());
  EXPECT_EQ(counted().violations, 1u);
}

TEST_F(EngineReports, AreDroppedWhereTheCheckIsOff) {
  start("engine=off:on_violation=log,dump,callback");
  EXPECT_EQ(report().violations, 0);
  EXPECT_EQ(report().actions, 0u);
  EXPECT_EQ(counted().runs, 0u);
  EXPECT_EQ(counted().violations, 0u);
  EXPECT_TRUE(log_.lines().empty());
  EXPECT_TRUE(severities_.empty());
  EXPECT_TRUE(sink_->flush(kLong));
  EXPECT_TRUE(folder_.files().empty());
}

TEST(EngineReport, FollowsTheSettingsOfItsLayer) {
  RuntimePolicy policy = look_always({});
  RuntimePatch& patch = policy.patches.emplace_back();
  patch.layer_glob = "blk.1.*";
  patch.severities[LiveCheck::kEngine] = Severity::kWarning;
  patch.check_actions[LiveCheck::kEngine] = kActionThrow;
  auto sink = std::make_shared<RecordingSink>();
  auto guard = std::move(Guard::create(policy, {.sink = sink}).value());
  const std::vector<Finding> findings = {stale_cell()};
  EXPECT_EQ(guard->report(guard->layer("blk.0.attn"), cell_report(findings))
                .violations,
            0);
  EXPECT_EQ(
      guard->report(guard->layer("blk.1.attn"), cell_report(findings)).actions,
      kActionCount | kActionThrow);
  ASSERT_EQ(sink->records().size(), 1u);
  EXPECT_THAT(sink->records()[0].text, HasSubstr("blk.1.attn: engine: "));
}

// Nobody asks the guard's own checks for it: no call is skipped in its name,
// and it takes no part of the budget of the others.
TEST(EngineReport, IsNoCheckOfTheGuardsOwn) {
  auto guard = std::move(
      Guard::create(look_always({LiveCheck::kFinite, LiveCheck::kEngine}))
          .value());
  const LayerHandle layer = guard->layer("a");
  LiveTensors tensors("seq_len=4 head_dim=8 mask=full");
  EXPECT_EQ(guard->observe(layer, tensors.call()).checks, 1);
  EXPECT_EQ(guard->observe(layer, AttentionCall{}).checks, 0);
  const CheckCounters counters = guard->counters().check(LiveCheck::kEngine);
  EXPECT_EQ(counters.runs, 0u);
  for (const std::uint64_t skipped : counters.skipped) EXPECT_EQ(skipped, 0u);
  EXPECT_EQ(guard->counters()
                .check(LiveCheck::kFinite)
                .skipped_for(SkipReason::kUnsupported),
            1u);
}

// The host's own function may fail: the report counts, and so does that.
TEST(EngineReport, SurvivesNumericsThatThrow) {
  auto sink = std::make_shared<RecordingSink>();
  auto guard = std::move(
      Guard::create(look_always({LiveCheck::kEngine}), {.sink = sink}).value());
  LayerOptions options;
  options.numerics = [](const Problem&) -> Numerics {
    throw std::runtime_error("numerics");
  };
  const LayerHandle layer = guard->layer("a", options);
  LiveTensors tensors("seq_len=4 head_dim=8 mask=full");
  const AttentionCall call = tensors.call();
  const std::vector<Finding> findings = {stale_cell()};
  EngineReport report = cell_report(findings);
  report.call = &call;
  EXPECT_EQ(guard->report(layer, report).violations, 1);
  const CheckCounters counters = guard->counters().check(LiveCheck::kEngine);
  EXPECT_EQ(counters.violations, 1u);
  EXPECT_EQ(counters.skipped_for(SkipReason::kGuardError), 1u);
  EXPECT_TRUE(sink->records().empty());
}

TEST(EngineReport, ComesFromManyThreads) {
  auto sink = std::make_shared<RecordingSink>();
  auto guard = std::move(
      Guard::create(look_always({LiveCheck::kEngine}), {.sink = sink}).value());
  const LayerHandle layer = guard->layer("a");
  const std::vector<Finding> findings = {stale_cell()};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int n = 0; n < 100; ++n)
          guard->report(layer, cell_report(findings));
      });
  }
  EXPECT_EQ(guard->counters().check(LiveCheck::kEngine).violations, 400u);
  EXPECT_EQ(sink->records().size(), 400u);
}

// Run in the child, whose exit code says what went wrong.
int report_in_child(Guard& guard, LayerHandle layer, ActionSink& sink) {
  if (guard.counters().check(LiveCheck::kEngine).violations != 0) return 2;
  const std::vector<Finding> findings = {stale_cell()};
  if (guard.report(layer, cell_report(findings)).violations != 1) return 3;
  if (guard.counters().check(LiveCheck::kEngine).violations != 1) return 4;
#if defined(__SANITIZE_THREAD__)
  return 0;  // It knows no threads that start after a fork.
#else
  if (!sink.flush(kLong)) return 5;
  return sink.counters().dumps.written == 1 ? 0 : 6;
#endif
}

TEST_F(EngineReports, GoOnInTheChildOfAFork) {
  start("on_violation=dump");
  report();
  ASSERT_TRUE(sink_->flush(kLong));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);
    _exit(report_in_child(*guard_, layer_, *sink_));
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(counted().violations, 1u);
}

}  // namespace
}  // namespace attnguard
