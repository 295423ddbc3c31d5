#include "guard/policy/runtime_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "guard/policy/runtime_values.h"
#include "tests/policy/policy_testing.h"

namespace attnguard {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

RuntimePolicy with(std::string_view options) {
  RuntimePolicy policy;
  const RuntimeOptionsParse parse = apply_runtime_options(options, policy);
  EXPECT_TRUE(parse.ok()) << parse.errors.front();
  return policy;
}

std::string options_error(std::string_view options) {
  RuntimePolicy policy;
  const RuntimeOptionsParse parse = apply_runtime_options(options, policy);
  if (parse.ok()) return "no error";
  EXPECT_TRUE(policy.patches.empty()) << "changed in spite of " << options;
  return parse.errors.front();
}

TEST(RuntimeOptions, SetWhatTheyName) {
  const RuntimePolicy policy = with(
      "sample=1/100:max_overhead=1%:on_violation=log,dump:dump_dir=/x:"
      "rows=16:shadow=0:canary_interval=60s:canary=off:"
      "dump_max_bytes=8MiB:dump_max_files=3:log_per_minute=1.5:seed=9:"
      "window=2:canary_at_start=0:recompute=warning:"
      "on_recompute=fallback");
  const RuntimeSettings settings = policy.resolve("any");
  EXPECT_EQ(settings.sample_every, 100);
  EXPECT_EQ(policy.max_overhead, 0.01);
  EXPECT_EQ(settings.check(LiveCheck::kFinite).actions,
            kActionCount | kActionLog | kActionDump);
  EXPECT_EQ(policy.dump.folder, "/x");
  EXPECT_EQ(settings.rows, 16);
  EXPECT_EQ(settings.shadow_every, 0);
  EXPECT_EQ(settings.canary_interval, 60);
  EXPECT_FALSE(settings.is_on(LiveCheck::kCanary));
  EXPECT_EQ(policy.dump.max_bytes, 8 << 20);
  EXPECT_EQ(policy.dump.max_files, 3);
  EXPECT_EQ(policy.log_per_minute, 1.5);
  EXPECT_EQ(policy.seed, 9u);
  EXPECT_EQ(policy.window, 2);
  EXPECT_FALSE(settings.canary_at_start);
  EXPECT_EQ(settings.check(LiveCheck::kRecompute).severity, Severity::kWarning);
  EXPECT_EQ(settings.check(LiveCheck::kRecompute).actions,
            kActionCount | kActionFallback);
}

TEST(RuntimeOptions, AllowBlanksEmptyPiecesAndQuotedColons) {
  const RuntimePolicy policy =
      with(" sample = 1/7 ::dump_dir='/a:b c':max_overhead=none:");
  EXPECT_EQ(policy.resolve("").sample_every, 7);
  EXPECT_EQ(policy.dump.folder, "/a:b c");
  EXPECT_FALSE(policy.max_overhead);
  with("");
}

TEST(RuntimeOptions, AskForHelp) {
  RuntimePolicy policy;
  EXPECT_TRUE(apply_runtime_options("sample=1/5:help=1", policy).help);
  EXPECT_FALSE(apply_runtime_options("help=0", policy).help);
  const std::string help = runtime_options_help(policy);
  for (const RuntimeOption& option : all_runtime_options())
    EXPECT_THAT(help, HasSubstr("\n  " + option.name + "=" + option.values));
  EXPECT_THAT(help, HasSubstr("One call in N is looked at; 0: none; now 1/5"));
}

TEST(RuntimeOptions, NameTheOptionAndTheFix) {
  EXPECT_EQ(options_error("smple=1/5"),
            "ATTNGUARD_OPTIONS: unknown option 'smple'; did you mean "
            "'sample'?");
  EXPECT_EQ(options_error("sample"),
            "ATTNGUARD_OPTIONS: sample: has no value; write sample=1/N");
  EXPECT_EQ(options_error("sample=5"),
            "ATTNGUARD_OPTIONS: sample: expected 1/N (one in N), 1 (every "
            "one) or 0 (none), got '5'");
  EXPECT_EQ(options_error("on_violation=log,dmp"),
            "ATTNGUARD_OPTIONS: on_violation: unknown action 'dmp'; did you "
            "mean 'dump'?");
  EXPECT_EQ(options_error("canary=fatal:rows=1"),
            "ATTNGUARD_OPTIONS: canary: unknown severity 'fatal'; known: "
            "error, warning, off");
  EXPECT_THAT(options_error("dump_dir='/x"), HasSubstr("a quote has no end"));
  EXPECT_THAT(options_error("window=0"), HasSubstr("window"));
  EXPECT_THAT(options_error("help=2"),
              HasSubstr("help: expected true or false"));
}

TEST(RuntimeOptions, RefuseValuesThatAreNone) {
  for (const char* options : {"sample=1/0",
                              "sample=1/-5",
                              "sample=",
                              "sample=1/1e3",
                              "max_overhead=101%",
                              "max_overhead=-1%",
                              "max_overhead=nan",
                              "max_overhead=%",
                              "rows=0",
                              "rows=1.5",
                              "rows=99999999999999999999",
                              "dump_max_bytes=9999999999GiB",
                              "dump_max_bytes=-1",
                              "dump_max_bytes=5MB",
                              "log_per_minute=inf",
                              "log_per_minute=-1",
                              "seed=-1",
                              "canary_at_start=yes",
                              "on_violation=",
                              "dump_dir=",
                              "canary_interval=nan"})
    EXPECT_NE(options_error(options), "no error") << options;
}

TEST(RuntimeOptions, ReportEveryError) {
  RuntimePolicy policy;
  EXPECT_THAT(apply_runtime_options("a=1:sample=x:rows=5:b=2", policy).errors,
              testing::SizeIs(3));
}

// What stands in the environment wins over all that a policy says.
TEST(RuntimeOptions, OverrideThePolicyOfEveryLayer) {
  const PolicyParse parsed = parse(R"(version: 1
runtime:
  sample: 1/50
  on_recompute: [log, abort]
  layers:
    "blk.0.*": {sample: 1, on_recompute: throw}
)");
  ASSERT_TRUE(parsed.policy) << format_diagnostics(parsed.diagnostics);
  RuntimePolicy policy = *parsed.policy->runtime;
  EXPECT_EQ(policy.resolve("blk.0.attn").sample_every, 1);
  ASSERT_TRUE(
      apply_runtime_options("sample=1/9:on_violation=count", policy).ok());
  for (const char* layer : {"blk.0.attn", "blk.1.attn"}) {
    const RuntimeSettings settings = policy.resolve(layer);
    EXPECT_EQ(settings.sample_every, 9);
    EXPECT_EQ(settings.check(LiveCheck::kRecompute).actions, kActionCount);
  }
}

TEST(RuntimeOptions, AreReadFromTheEnvironment) {
  ASSERT_EQ(setenv(kRuntimeOptionsVariable, "sample=1/3", 1), 0);
  RuntimePolicy policy;
  EXPECT_TRUE(apply_runtime_environment(policy).ok());
  EXPECT_EQ(policy.resolve("").sample_every, 3);
  unsetenv(kRuntimeOptionsVariable);
  EXPECT_TRUE(apply_runtime_environment(policy).ok());
}

TEST(RuntimeOptions, EachHasOneNameAndSomethingToSay) {
  std::set<std::string_view> names;
  for (const RuntimeOption& option : all_runtime_options()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    EXPECT_FALSE(option.help.empty()) << option.name;
    EXPECT_FALSE(option.values.empty()) << option.name;
  }
  for (std::string_view check : live_check_ids())
    EXPECT_TRUE(names.contains(check)) << check;
}

TEST(RuntimeValues, ReadWhatTheyPrint) {
  for (std::int64_t every : {0, 1, 2, 1000})
    EXPECT_EQ(parse_one_in(one_in_text(every)).value(), every);
  for (double share : {0.0, 0.005, 0.01, 1.0, 0.1, 1.0 / 3, 0.07})
    EXPECT_EQ(parse_share(share_text(share)).value(), share);
  EXPECT_EQ(share_text(0.005), "0.5%");
  EXPECT_EQ(share_text(std::nullopt), "none");
  for (std::int64_t bytes : {0, 1, 1023, 1024, 1 << 20, 64 << 20})
    EXPECT_EQ(parse_bytes(bytes_text(bytes)).value(), bytes);
  EXPECT_EQ(bytes_text(64 << 20), "64MiB");
  for (ActionSet actions = 0; actions < 128; ++actions)
    EXPECT_EQ(parse_actions(actions_text(actions)).value(),
              actions | kActionCount);
}

constexpr std::string_view kWhole = R"(version: 1
runtime:
  sample: 1/500
  max_overhead: 0.25%
  window: 5
  rows: 8
  shadow: 1/20
  canary_at_start: true
  canary_on_new_shape: false
  canary_interval: 0
  on_violation: [log, dump]
  on_warning: count
  on_finite: [log, callback, abort]
  dump_dir: "/var/tmp/a \"b\""
  dump_max_bytes: 1MiB
  dump_max_files: 2
  log_per_minute: 0.5
  seed: 18446744073709551615
  checks:
    canary: off
    ones: warning
  layers:
    "blk.0.*": {sample: 1/10, checks: {canary: error}}
    "blk.1.*":
      on_violation: [fallback, log]
)";

TEST(RuntimePolicyYaml, IsReadAndPrintedTheSame) {
  const PolicyParse first = parse(kWhole);
  ASSERT_TRUE(first.policy) << format_diagnostics(first.diagnostics);
  ASSERT_NE(first.policy->runtime, nullptr);
  const RuntimePolicy& policy = *first.policy->runtime;
  EXPECT_EQ(policy.name, "policy.yaml");
  EXPECT_EQ(policy.max_overhead, 0.0025);
  EXPECT_EQ(policy.dump.folder, "/var/tmp/a \"b\"");
  EXPECT_EQ(policy.seed, 18446744073709551615u);
  EXPECT_EQ(policy.resolve("blk.0.attn").sample_every, 10);
  EXPECT_EQ(policy.resolve("blk.2.attn").sample_every, 500);
  EXPECT_TRUE(policy.resolve("blk.0.attn").is_on(LiveCheck::kCanary));
  EXPECT_FALSE(policy.resolve("blk.1.attn").is_on(LiveCheck::kCanary));
  EXPECT_EQ(policy.resolve("blk.1.attn").check(LiveCheck::kRecompute).actions,
            kActionCount | kActionLog | kActionFallback);
  EXPECT_EQ(policy.resolve("x").check(LiveCheck::kFinite).actions,
            kActionCount | kActionLog | kActionCallback | kActionAbort);
  EXPECT_EQ(policy.resolve("x").check(LiveCheck::kOnes).actions, kActionCount);

  const std::string printed = print_policy(*first.policy);
  const PolicyParse second = parse(printed);
  ASSERT_TRUE(second.policy)
      << printed << format_diagnostics(second.diagnostics);
  EXPECT_EQ(print_policy(*second.policy), printed);
  for (const char* layer : {"blk.0.attn", "blk.1.attn", "x"}) {
    const RuntimeSettings a = policy.resolve(layer);
    const RuntimeSettings b = second.policy->runtime->resolve(layer);
    EXPECT_EQ(a.sample_every, b.sample_every);
    EXPECT_EQ(a.canary_interval, b.canary_interval);
    for (LiveCheck check : all_live_checks()) {
      EXPECT_EQ(a.check(check).severity, b.check(check).severity);
      EXPECT_EQ(a.check(check).actions, b.check(check).actions);
    }
  }
  EXPECT_EQ(second.policy->runtime->max_overhead, policy.max_overhead);
  EXPECT_EQ(second.policy->runtime->seed, policy.seed);
  EXPECT_EQ(second.policy->runtime->dump.folder, policy.dump.folder);
}

TEST(RuntimePolicyYaml, IsNotThereWhenTheFileSaysNothing) {
  EXPECT_EQ(parse("version: 1\n").policy->runtime, nullptr);
  EXPECT_EQ(print_policy(*parse("version: 1\n").policy).find("runtime"),
            std::string::npos);
}

TEST(RuntimePolicyYaml, NamesTheLineAndTheColumnOfAnError) {
  EXPECT_THAT(
      errors("version: 1\n"
             "runtime:\n"
             "  smple: 1/5\n"
             "  sample: 5\n"
             "  canary: off\n"
             "  rows: [1]\n"
             "  on_violation: [log, dmp]\n"
             "  checks:\n"
             "    fnite: error\n"
             "    finite: fatal\n"
             "  layers:\n"
             "    \"a\": {max_overhead: 1%}\n"
             "    \"b\": 5\n"),
      ElementsAre(
          "3:3 unknown key 'smple'; did you mean 'sample'?",
          "4:11 sample: expected 1/N (one in N), 1 (every one) or 0 (none), "
          "got '5'",
          "5:3 'canary' is a check; write it under 'checks'",
          "6:9 rows: expected N, got a list",
          "7:17 on_violation: unknown action 'dmp'; did you mean 'dump'?",
          "9:5 unknown live check 'fnite'; did you mean 'finite'?",
          "10:13 finite: unknown severity 'fatal'; known: error, warning, off",
          "12:11 'max_overhead' cannot differ by layer; move it to 'runtime'",
          "13:10 layer 'b': expected a map of settings such as 'sample: "
          "1/10', got '5'"));
  EXPECT_THAT(errors("version: 1\nruntime: 5\n"),
              ElementsAre(HasSubstr("2:10 runtime: expected a map")));
  EXPECT_THAT(errors("version: 1\nruntime: {window: 0}\n"),
              ElementsAre(HasSubstr("2:10 runtime: window is 0")));
}

}  // namespace
}  // namespace attnguard
