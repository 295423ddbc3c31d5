// Plugins under the guard: correct ones pass, and what others do wrong is
// named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "guard/problem/random_problem.h"
#include "tests/adapters/plugin/test_plugins.h"
#include "tests/engine/test_tensors.h"
#include "tests/support/engines.h"
#include "tests/support/sanitizer.h"

namespace attnguard {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

constexpr const char* kTiny =
    "num_heads=2 num_kv_heads=1 seq_len=5 head_dim=16 mask=causal_top_left";

// One plain run on kTiny, in a dtype.
Status run_tiny(const Engine& engine, const std::string& dtype = "fp32") {
  TestTensors tensors(problem_of(std::string(kTiny) + " dtype=" + dtype));
  return run_engine(engine, tensors.call());
}

void expect_failure(const std::string& fault, const std::string& says) {
  SCOPED_TRACE(fault);
  const Status status =
      run_tiny(plugin_engine("fixture", ",fault=" + fault), "fp16");
  EXPECT_EQ(status.code(), StatusCode::kEngineFailure);
  EXPECT_THAT(status.message(), HasSubstr("engine 'plugin:"));
  EXPECT_THAT(status.message(), HasSubstr(says));
}

// The built-in policy's problems of few products, all features included.
Policy small_policy(std::int64_t most) {
  Policy policy = default_policy();
  std::erase_if(policy.problems, [&](const PolicyProblem& each) {
    const Problem& p = each.problem;
    return p.batch * p.num_heads * p.max_len_q() * p.max_len_kv() *
               (p.head_dim_qk + p.head_dim_v) >
           most;
  });
  return policy;
}

void expect_all_pass(const Engine& engine, const Policy& policy) {
  RunOptions options;
  options.draw_maps = false;
  const RunResult result = verify(engine, policy, options);
  EXPECT_EQ(result.verdict, Verdict::kPass) << result.note;
  std::set<std::string> passed;
  for (const ProblemResult& problem : result.problems) {
    EXPECT_EQ(problem.verdict, Verdict::kPass) << findings_text(problem);
    for (const CheckResult& check : problem.checks)
      if (check.verdict == Verdict::kPass) passed.insert(check.check);
  }
  // Each check found something to say.
  for (std::string_view id : {"visibility", "row-sum", "reference", "weights",
                              "lse", "cache-write", "unused-slots-nan"})
    EXPECT_TRUE(passed.contains(std::string(id))) << id;
}

TEST(PluginRun, EveryFieldCrossesTheInterface) {
  const Policy policy =
      small_policy(kUnderAddressSanitizer ? 1 << 18 : 1 << 20);
  EXPECT_GT(policy.problems.size(), kUnderAddressSanitizer ? 100u : 150u);
  expect_all_pass(plugin_engine("fixture"), policy);
}

TEST(PluginRun, TheHostNeverTouchesTheDevicesMemory) {
  const Policy policy = small_policy(1 << 18);
  EXPECT_GT(policy.problems.size(), 100u);
  const Engine engine = plugin_engine("device");
  ASSERT_NE(engine.memory, nullptr);
  EXPECT_FALSE(engine.memory->host_accessible());
  expect_all_pass(engine, policy);
}

TEST(PluginRun, MemoryOfThePluginThatTheHostMayUseIsNotCopied) {
  const Engine engine = plugin_engine("device", ",memory=shared");
  ASSERT_NE(engine.memory, nullptr);
  EXPECT_TRUE(engine.memory->host_accessible());
  const ProblemResult result = run_problem(engine, kTiny);
  EXPECT_EQ(result.verdict, Verdict::kPass) << findings_text(result);
}

TEST(PluginRun, RandomProblemsPassByRangesAndByWindow) {
  const Engine ranges = plugin_engine("fixture");
  const Engine window = plugin_engine("fixture", ",mask=window");
  const Engine device = plugin_engine("device", ",mask=window");
  RunOptions options;
  options.draw_maps = false;
  int passed = 0;
  for (std::uint64_t seed = 0; seed < 15; ++seed) {
    const Problem problem = random_problem(seed, Variety::kAll);
    for (const Engine& engine : {ranges, window, device}) {
      const ProblemResult result =
          verify_problem(engine, problem, Settings{}, options);
      // Some have no row, or too few channels to say anything.
      EXPECT_THAT(result.verdict, AnyOf(Verdict::kPass, Verdict::kInconclusive,
                                        Verdict::kNotApplicable))
          << engine.name << " " << findings_text(result);
      passed += result.verdict == Verdict::kPass;
    }
  }
  EXPECT_GT(passed, 30);
}

TEST(PluginRun, TheTemplatePassesAndItsOptionIsHeeded) {
  const Engine engine = plugin_engine("template");
  for (const char* line :
       {kTiny,
        "batch=2 num_heads=6 num_kv_heads=2 seq_len_q=33 seq_len_kv=65,40 "
        "head_dim=24 mask=causal_bottom_right",
        "num_heads=2 seq_len=40 head_dim=32 layout=bshd "
        "mask=documents(lengths=11:0:20)+causal_bottom_right",
        "batch=3 num_heads=4 num_kv_heads=2 seq_len_q=1 seq_len_kv=40,7,33 "
        "head_dim=32 mask=causal_bottom_right packed=true block_size=16"}) {
    const ProblemResult result = run_problem(engine, line);
    EXPECT_EQ(result.verdict, Verdict::kPass) << findings_text(result);
  }
  EXPECT_THAT(unsupported_reason(
                  engine, problem_of("seq_len=5 head_dim=8 empty_row=nan")),
              HasSubstr("empty rows give 0"));
  const ProblemResult hot =
      run_problem(plugin_engine("template", ",temperature=2"), kTiny);
  EXPECT_EQ(hot.verdict, Verdict::kViolation);
  EXPECT_THAT(open_plugin("template", ",temperature=x").status().message(),
              HasSubstr("temperature= expects a number above 0, not 'x'"));
  EXPECT_THAT(open_plugin("template", ",heat=2").status().message(),
              HasSubstr("unknown option 'heat'; known: temperature"));
}

TEST(PluginRun, ALeakIsFoundAndExplained) {
  for (const char* name : {"fixture", "device"}) {
    const Engine engine = plugin_engine(name, ",fault=leaks");
    Settings settings;
    settings.seed = 3;
    const ProblemResult result =
        verify_problem(engine, problem_of(kTiny), settings, {});
    EXPECT_EQ(result.verdict, Verdict::kViolation);
    EXPECT_EQ(expect_check(result, "visibility").verdict, Verdict::kViolation);
    EXPECT_EQ(expect_check(result, "future-influence").verdict,
              Verdict::kViolation);
    ASSERT_TRUE(result.map.has_value());
    EXPECT_EQ(result.map->cells.front().front(), '#');
    EXPECT_EQ(result.map->cells.front().back(), 'X');
    ASSERT_TRUE(result.diagnosis.has_value());
    EXPECT_EQ(diagnosis_name(*result.diagnosis), "no-mask");
    EXPECT_THAT(result.replay, HasSubstr("--engine "));
  }
}

TEST(PluginRun, AWriteBesideTheOutputIsFound) {
  for (const char* name : {"fixture", "device"}) {
    const ProblemResult result =
        run_problem(plugin_engine(name, ",fault=overruns"), kTiny, {"memory"});
    const CheckResult& memory = expect_check(result, "memory");
    ASSERT_EQ(memory.verdict, Verdict::kViolation) << findings_text(result);
    EXPECT_THAT(memory.findings.front().message, HasSubstr("output"));
  }
}

TEST(PluginRun, AnAppendThatForgetsIsFound) {
  const ProblemResult result =
      run_problem(plugin_engine("device", ",fault=append-forgets"),
                  "batch=2 num_heads=2 seq_len_q=1 seq_len_kv=20 head_dim=32 "
                  "mask=causal_bottom_right",
                  {"cache-write"});
  EXPECT_EQ(result.verdict, Verdict::kViolation) << findings_text(result);
}

TEST(PluginRun, SaysHowACallFailed) {
  expect_failure("status",
                 "run() returned status 77, which plugin ABI version "
                 "1 does not have");
  expect_failure("status", "its message: hm");
  expect_failure("fails", "run() returned 'failed': illegal address at launch");
  expect_failure("silent", "run() returned 'failed' and gave no message");
  expect_failure("throws", "run() threw an exception (kernel image is");
  expect_failure("endless-message", "xxxx");
  expect_failure("message-overrun", "past the end of its message buffer");
  expect_failure("supports-fails", "supports() returned 'failed': lost the");
  expect_failure("numerics-dtype", "numerics(): accumulator is 9, which is no");
  expect_failure("numerics-negative", "numerics(): key_error is not a finite");
  expect_failure("numerics-overrun", "numerics() wrote past the end");
}

// What the plugin's own code makes of a failure: out of memory says nothing
// against the kernel, and anything else is an error of the engine's.
TEST(PluginRun, TheNoteSaysWhyThePluginGaveNoMemory) {
  const auto run = [](const std::string& fault) {
    return run_problem(plugin_engine("device", ",fault=" + fault), kTiny);
  };
  const ProblemResult ends = run("memory-ends");
  EXPECT_EQ(ends.verdict, Verdict::kInconclusive);
  EXPECT_EQ(ends.note,
            "no memory for the query tensor (640 bytes): allocate() returned "
            "'out of memory': cuMemAlloc: out of memory, 3 MiB free; a smaller "
            "problem needs less");
  const ProblemResult fails = run("memory-fails");
  EXPECT_EQ(fails.verdict, Verdict::kEngineError);
  EXPECT_EQ(fails.note,
            "no memory for the query tensor (640 bytes): allocate() returned "
            "'failed': cuMemAlloc: device lost");
  const ProblemResult nulls = run("memory-nulls");
  EXPECT_EQ(nulls.verdict, Verdict::kEngineError);
  EXPECT_THAT(nulls.note,
              HasSubstr("allocate() returned success and no memory"));
}

TEST(PluginRun, ALieAboutCapabilitiesIsCalledOne) {
  const Engine engine = plugin_engine("fixture", ",fault=lies");
  EXPECT_TRUE(run_tiny(engine, "fp32").ok());
  const Status status = run_tiny(engine, "fp16");
  EXPECT_EQ(status.code(), StatusCode::kEngineFailure);
  EXPECT_THAT(status.message(),
              HasSubstr("run() returned 'unsupported': built without fp16 for "
                        "a problem of dtype fp16 that it claims to run"));
  const ProblemResult result =
      run_problem(engine, std::string(kTiny) + " dtype=fp16");
  EXPECT_EQ(result.verdict, Verdict::kEngineError);
  EXPECT_THAT(findings_text(result), HasSubstr("that it claims to run"));
  const ProblemResult append =
      run_problem(plugin_engine("fixture", ",fault=append-lies"),
                  "num_heads=2 seq_len_q=1 seq_len_kv=20 head_dim=32 "
                  "mask=causal_bottom_right");
  EXPECT_EQ(append.verdict, Verdict::kEngineError) << findings_text(append);
  EXPECT_THAT(findings_text(append), HasSubstr("append() returned"));
}

TEST(PluginRun, WhatSupportsRefusesIsNotRun) {
  const Engine engine = plugin_engine("fixture", ",fault=supports-refuses");
  EXPECT_EQ(unsupported_reason(engine, problem_of("seq_len=5 head_dim=16")),
            "");
  EXPECT_EQ(unsupported_reason(engine, problem_of("seq_len=5 head_dim=12")),
            "head_dim_qk must be a multiple of 8");
  const Engine silent = plugin_engine("fixture", ",fault=refuses-silently");
  EXPECT_EQ(unsupported_reason(silent, problem_of(kTiny)),
            "the plugin refuses it without a reason");
}

TEST(PluginRun, NumericsReachThePlanner) {
  const Problem problem = problem_of(kTiny);
  EXPECT_EQ(numerics_of(plugin_engine("fixture"), problem).accumulator,
            Dtype::kFp32);
  const Numerics half =
      numerics_of(plugin_engine("fixture", ",fault=numerics-half"), problem);
  EXPECT_EQ(half.accumulator, Dtype::kFp16);
  EXPECT_EQ(half.score, Dtype::kFp32);
  EXPECT_EQ(half.max_input, 100);
}

TEST(PluginRun, RowRangesRefuseNonsense) {
  const Status status =
      run_tiny(plugin_engine("fixture", ",fault=abuses-ranges"));
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(PluginRun, InstancesDoNotShareAnything) {
  const Engine good = plugin_engine("fixture");
  const Engine bad = plugin_engine("fixture", ",fault=leaks");
  EXPECT_EQ(run_problem(bad, kTiny).verdict, Verdict::kViolation);
  EXPECT_EQ(run_problem(good, kTiny).verdict, Verdict::kPass);
}

}  // namespace
}  // namespace attnguard
