#include "guard/runtime/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <set>

#include "guard/base/version.h"
#include "tests/support/required_engine.h"

namespace attnguard {
namespace {

using ::testing::HasSubstr;

GuardCounters sample_counters() {
  GuardCounters counters;
  counters.calls = 12345678901;
  counters.sampled = 1000;
  counters.checked = 900;
  CheckCounters& check =
      counters.checks[static_cast<std::size_t>(LiveCheck::kRecompute)];
  check.runs = 890;
  check.rows = 3560;
  check.violations = 2;
  check.findings = 3;
  check.nanoseconds = 1'500'000'000;
  check.skipped[static_cast<std::size_t>(SkipReason::kBudget)] = 7;
  check.errors.counts = {5, 4, 3, 2, 1, 0, 0, 1};
  check.errors.sum = 2.5;
  counters.groups.push_back({"blk.*.attn", {}});
  counters.groups.back()
      .violations[static_cast<std::size_t>(LiveCheck::kRecompute)] = 2;
  counters.overhead_nanoseconds = 2'000'000'000;
  counters.elapsed_nanoseconds = 1'000'000'000'000;
  counters.threads = 4;
  counters.canary = {3, 12.5, 2};
  return counters;
}

TEST(Metrics, ShowsWhatTheGuardCounted) {
  const ActionCounters actions{.log_lines = 2,
                               .log_suppressed = 1,
                               .dumps = {.written = 1, .bytes = 4096}};
  const std::string text =
      prometheus_text(guard_metrics(sample_counters(), &actions));
  for (const char* line :
       {"# TYPE attnguard_calls_total counter\nattnguard_calls_total "
        "12345678901\n",
        "\nattnguard_sampled_calls_total 1000\n",
        "\nattnguard_check_runs_total{check=\"recompute\"} 890\n",
        "\nattnguard_check_runs_total{check=\"finite\"} 0\n",
        "\nattnguard_violations_total{check=\"recompute\",layer_group=\"blk.*."
        "attn\"} 2\n",
        "\nattnguard_skipped_total{check=\"recompute\",reason=\"budget\"} 7\n",
        "# TYPE attnguard_error_ratio histogram\n",
        "\nattnguard_error_ratio_bucket{check=\"recompute\",le=\"0.001\"} 5\n",
        "\nattnguard_error_ratio_bucket{check=\"recompute\",le=\"1\"} 15\n",
        "\nattnguard_error_ratio_bucket{check=\"recompute\",le=\"+Inf\"} 16\n",
        "\nattnguard_error_ratio_sum{check=\"recompute\"} 2.5\n",
        "\nattnguard_error_ratio_count{check=\"recompute\"} 16\n",
        "\nattnguard_overhead_seconds_total 2\n",
        "\nattnguard_canary_age_seconds 12.5\n",
        "\nattnguard_log_lines_total{outcome=\"rate_limited\"} 1\n",
        "\nattnguard_dumps_total{outcome=\"written\"} 1\n",
        "\nattnguard_dump_bytes_total 4096\n"})
    EXPECT_THAT(text, HasSubstr(line));
  EXPECT_THAT(text, HasSubstr("attnguard_build_info{version=\"" +
                              std::string(version_string()) + "\"} 1\n"));
}

TEST(Metrics, HasNoAgeOfACanaryThatNeverRan) {
  const std::string text = prometheus_text(guard_metrics(GuardCounters{}));
  EXPECT_EQ(text.find("attnguard_canary_age_seconds"), std::string::npos);
  EXPECT_THAT(text, HasSubstr("attnguard_canary_runs_total 0\n"));
  EXPECT_EQ(text.find("attnguard_dumps_total"), std::string::npos);
}

TEST(Metrics, HasNoLabelThatGrowsWithTheTraffic) {
  const std::set<std::string> known = {"check", "layer_group", "reason",
                                       "outcome", "version"};
  const ActionCounters actions;
  std::set<std::string> names;
  for (const MetricFamily& family :
       guard_metrics(sample_counters(), &actions)) {
    EXPECT_TRUE(names.insert(family.name).second) << family.name;
    for (const MetricSample& sample : family.samples)
      for (const auto& [label, value] : sample.labels)
        EXPECT_TRUE(known.contains(label)) << family.name << ' ' << label;
  }
}

TEST(PrometheusText, EscapesWhatNamesMayHold) {
  const std::vector<MetricFamily> families = {
      {"x",
       "back\\slash \"quote\"\nline",
       MetricType::kGauge,
       {{{{"a", "1\\2\"3\n4"}, {"b", "\xff\xc3\xa4\xed\xa0\x80"}}, 0.5, {}}}}};
  EXPECT_EQ(prometheus_text(families),
            "# HELP x back\\\\slash \"quote\"\\nline\n"
            "# TYPE x gauge\n"
            "x{a=\"1\\\\2\\\"3\\n4\",b=\"?\xc3\xa4???\"} 0.5\n");
}

TEST(PrometheusText, WritesNumbersThatAreNoDecimals) {
  const auto line = [](double value) {
    const std::vector<MetricFamily> families = {
        {"x", "h", MetricType::kGauge, {{{}, value, {}}}}};
    const std::string text = prometheus_text(families);
    return text.substr(text.rfind("x "));
  };
  EXPECT_EQ(line(std::numeric_limits<double>::infinity()), "x +Inf\n");
  EXPECT_EQ(line(-std::numeric_limits<double>::infinity()), "x -Inf\n");
  EXPECT_EQ(line(std::numeric_limits<double>::quiet_NaN()), "x NaN\n");
  EXPECT_EQ(line(1e22), "x 1e+22\n");
}

// Prometheus' own linter. Where it is not installed the test is skipped,
// unless ATTNGUARD_REQUIRE_ENGINES names promtool.
TEST(PrometheusText, PassesPromtool) {
  if (std::system("command -v promtool >/dev/null 2>&1") != 0) {
    if (engine_is_required("promtool")) FAIL() << "promtool is not installed";
    GTEST_SKIP() << "skipped: promtool not found";
  }
  const auto lint = [](const std::string& text) {
    std::FILE* pipe = popen("promtool check metrics 2>&1", "w");
    EXPECT_NE(pipe, nullptr);
    std::fwrite(text.data(), 1, text.size(), pipe);
    return WEXITSTATUS(pclose(pipe));
  };
  const ActionCounters actions;
  GuardCounters counters = sample_counters();
  counters.groups.push_back({"quote \" slash \\ line \n \xff", {}});
  EXPECT_EQ(lint(prometheus_text(guard_metrics(counters, &actions))), 0);
  // The linter itself sees what is wrong.
  EXPECT_NE(lint("x{a=\"1} 2\n"), 0);
}

}  // namespace
}  // namespace attnguard
