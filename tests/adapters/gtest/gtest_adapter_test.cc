// The matchers on engines that are right and wrong, and a user's test program
// as GoogleTest's own flags drive it.
#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <pugixml.hpp>
#include <stdexcept>

#include "adapters/gtest/gtest.h"
#include "guard/base/text.h"
#include "guard/check/check.h"
#include "tests/support/engines.h"

namespace attnguard {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kMatcherLine =
    "num_heads=2 num_kv_heads=1 seq_len=5 head_dim=16 mask=causal_top_left";

std::string explanation(const EngineMatcher& matcher, const Engine& engine,
                        bool expected) {
  testing::StringMatchResultListener listener;
  EXPECT_EQ(matcher.MatchAndExplain(engine, &listener), expected)
      << listener.str();
  return listener.str();
}

// The explanation where there is no evidence, which fails the test either way.
std::string unjudged(const EngineMatcher& matcher, const Engine& engine) {
  testing::TestPartResultArray failures;
  testing::StringMatchResultListener listener;
  {
    testing::ScopedFakeTestPartResultReporter catching(
        testing::ScopedFakeTestPartResultReporter::
            INTERCEPT_ONLY_CURRENT_THREAD,
        &failures);
    EXPECT_THAT(engine, Not(matcher));
    matcher.MatchAndExplain(engine, &listener);
  }
  EXPECT_EQ(failures.size(), 2);
  for (int i = 0; i < failures.size(); ++i)
    EXPECT_THAT(failures.GetTestPartResult(i).message(),
                HasSubstr("no evidence either way"));
  return listener.str();
}

Policy policy_of_line(const std::string& line) {
  Policy policy;
  policy.problems.push_back({problem_of(line), {}});
  return policy;
}

TEST(EngineMatcher, PassesACorrectEngineAndNotTheWrongAxis) {
  EXPECT_THAT(builtin("tiled"), PassesPolicy(policy_of_line(kMatcherLine)));
  EXPECT_THAT(builtin("wrong_axis"),
              Not(PassesPolicy(policy_of_line(kMatcherLine))));
  EXPECT_THAT(builtin("tiled"), PassesProblem(kMatcherLine));
  EXPECT_THAT(builtin("wrong_axis"), Not(PassesProblem(kMatcherLine, 7)));
}

TEST(EngineMatcher, ExplainsWithFindingsMapDiagnosisAndReplay) {
  const std::string text = explanation(
      PassesPolicy(policy_of_line(kMatcherLine)), builtin("wrong_axis"), false);
  EXPECT_THAT(text,
              AllOf(HasSubstr("The weights of these rows do not sum to 1."),
                    HasSubstr("query 0  # X"), HasSubstr("behaves like"),
                    HasSubstr("attnguard check --engine builtin:wrong_axis")));
}

TEST(EngineMatcher, ReplaysAnEngineWithoutASpecificationByAnotherMatcher) {
  Engine engine = builtin("wrong_axis");
  engine.name = "mine";
  const std::string text =
      explanation(PassesProblem(kMatcherLine, 3), engine, false);
  const std::size_t at = text.find("attnguard::PassesProblem(\"");
  ASSERT_NE(at, text.npos) << text;
  EXPECT_THAT(text, Not(HasSubstr("attnguard check")));
  const std::size_t begin = text.find('"', at) + 1;
  const std::string line = text.substr(begin, text.find('"', begin) - begin);
  EXPECT_THAT(text.substr(begin + line.size()), StartsWith("\", 3));"));
  EXPECT_THAT(engine, Not(PassesProblem(line, 3)));
}

TEST(EngineMatcher, CausalIsTheClaimOfWhatItSays) {
  Policy policy = policy_of_line(kMatcherLine);
  for (const char* wrong : {"wrong_axis", "causal_off_by_one"})
    explanation(EngineMatcher(claim_policy(policy, claim_causal().checks)),
                builtin(wrong), false);
  EXPECT_GT(claim_causal().policy.policy()->problems.size(), 20u);
}

TEST(EngineMatcher, NoEvidenceIsNoMatch) {
  Engine unable = builtin("tiled");
  unable.capabilities.unsupported = [](const Problem&) {
    return std::string("not today");
  };
  EXPECT_THAT(unjudged(PassesPolicy(policy_of_line(kMatcherLine)), unable),
              HasSubstr("not today"));
  EXPECT_FALSE(judge_claim(claim_policy(Policy{}, {}), builtin("tiled")).holds);
}

TEST(EngineMatcher, MistakesSayWhatIsWrong) {
  EXPECT_THAT(unjudged(PassesProblem("seq_len=none"), builtin("tiled")),
              HasSubstr("is no problem"));
  EXPECT_THAT(unjudged(PassesPolicy("/nonexistent.yaml"), builtin("tiled")),
              HasSubstr("/nonexistent.yaml"));
  EXPECT_THAT(unjudged(PassesPolicy(policy_of_line(kMatcherLine), {"row-sums"}),
                       builtin("tiled")),
              HasSubstr("did you mean 'row-sum'"));
}

TEST(EngineMatcher, AnEngineThatThrowsIsNoMatch) {
  Engine engine = builtin("tiled");
  engine.run = [](const AttentionCall&) -> Status {
    throw std::runtime_error("out of luck");
  };
  EXPECT_THAT(unjudged(PassesProblem(kMatcherLine), engine),
              HasSubstr("out of luck"));
}

TEST(EngineMatcher, PrintsTheEngineByName) {
  EXPECT_EQ(testing::PrintToString(builtin("tiled")), "engine 'builtin:tiled'");
}

TEST(AttentionSuite, NamesAreUniqueAndPlain) {
  const AttentionSuite suite(builtin("tiled"), {}, {});
  EXPECT_EQ(suite.error(), "");
  std::set<std::string> names;
  for (const AttentionSuite::Group& group : suite.groups()) {
    EXPECT_TRUE(names.insert(group.name).second) << group.name;
    EXPECT_EQ(group.name.find_first_not_of(
                  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                  "0123456789_"),
              std::string::npos)
        << group.name;
    EXPECT_TRUE(!group.checks.empty()) << group.line;
  }
  EXPECT_EQ(names.size(), default_policy().problems.size());
}

TEST(AttentionSuite, RunsTheEngineOncePerProblem) {
  int calls = 0;
  Engine engine = builtin("tiled");
  const AttentionCallback tiled = engine.run;
  engine.run = [&calls, tiled](const AttentionCall& call) {
    ++calls;
    return tiled(call);
  };
  AttentionSuite suite(engine, policy_of_line(kMatcherLine), {});
  ASSERT_EQ(suite.groups().size(), 1u);
  const std::vector<std::string> checks = suite.groups()[0].checks;
  ASSERT_GT(checks.size(), 8u);
  int after_first = 0;
  for (const std::string& check : checks) {
    EXPECT_EQ(suite.outcome(0, check, checks, "").kind,
              TestOutcome::Kind::kPass)
        << check;
    if (after_first == 0) after_first = calls;
  }
  EXPECT_GT(calls, 0);
  EXPECT_EQ(calls, after_first);
  suite.forget();
  suite.outcome(0, checks[0], checks, "");
  EXPECT_EQ(calls, 2 * after_first);
}

TEST(AttentionSuite, WarningsPassWithTheirText) {
  Policy policy = policy_of_line(kMatcherLine);
  SettingsPatch patch;
  patch.severities["row-sum"] = Severity::kWarning;
  policy.patches.push_back(patch);
  AttentionSuite suite(builtin("wrong_axis"), policy, {"row-sum"});
  const TestOutcome outcome = suite.outcome(0, "row-sum", {"row-sum"}, "");
  EXPECT_EQ(outcome.kind, TestOutcome::Kind::kPass);
  EXPECT_THAT(outcome.text, HasSubstr("do not sum to 1"));
}

TEST(AttentionSuite, SaysWhyThereIsNone) {
  EXPECT_THAT(AttentionSuite(builtin("tiled"), "/nonexistent.yaml", {}).error(),
              HasSubstr("/nonexistent.yaml"));
  EXPECT_THAT(AttentionSuite(builtin("tiled"), {}, {"row-sums"}).error(),
              HasSubstr("did you mean 'row-sum'"));
  EXPECT_THAT(AttentionSuite(builtin("tiled"), Policy{}, {}).error(),
              HasSubstr("nothing of the policy"));
}

// The programs of example.cc, as a shell starts them.
struct Ran {
  int code = -1;
  std::string text;  // Both outputs.

  std::ptrdiff_t count(const std::string& word) const {
    std::ptrdiff_t found = 0;
    for (std::size_t at = text.find(word); at != text.npos;
         at = text.find(word, at + 1))
      ++found;
    return found;
  }
};

Ran run_example(const std::string& program, const std::string& flags,
                const std::string& environment = "") {
  const std::string command = "cd " + shell_quote(ATTNGUARD_TEST_DATA) +
                              "/adapters/gtest && env " + environment + " " +
                              shell_quote(program) + " " + flags + " 2>&1";
  Ran ran;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return ran;
  char buffer[4096];
  for (std::size_t n; (n = fread(buffer, 1, sizeof(buffer), pipe)) > 0;)
    ran.text.append(buffer, n);
  const int status = pclose(pipe);
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ran;
}

TEST(GtestExample, ListsOneTestPerProblemAndCheck) {
  const Ran ran = run_example(ATTNGUARD_GTEST_EXAMPLE,
                              "--gtest_list_tests "
                              "--gtest_filter='MyAttentionIn/*'");
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.count("MyAttentionIn/"), 3);
  EXPECT_EQ(ran.count("  row_sum"), 2) << ran.text;
  EXPECT_EQ(ran.count("  supported"), 1) << ran.text;
}

TEST(GtestExample, PassesAndSkipsWhatTheEngineDoesNotTake) {
  const Ran ran =
      run_example(ATTNGUARD_GTEST_EXAMPLE, "--gtest_filter='MyAttentionIn/*'");
  EXPECT_EQ(ran.code, 0) << ran.text;
  EXPECT_THAT(ran.text, HasSubstr("1 test, listed below"));
  EXPECT_THAT(ran.text, HasSubstr("fp16"));
}

TEST(GtestExample, EachTestRunsAloneByFilterAndNotMoreThanItself) {
  const Ran all =
      run_example(ATTNGUARD_GTEST_EXAMPLE,
                  "--gtest_filter='MyAttentionIn/*q5*'", "KERNEL_TELLS=1");
  const Ran one = run_example(ATTNGUARD_GTEST_EXAMPLE,
                              "--gtest_filter='MyAttentionIn/*q5*.row_sum'",
                              "KERNEL_TELLS=1");
  EXPECT_EQ(one.code, 0) << one.text;
  EXPECT_THAT(one.text, HasSubstr("Running 1 test from 1 test suite"));
  EXPECT_GT(one.count("call\n"), 0);
  EXPECT_LT(one.count("call\n"), all.count("call\n"));
  const Ran twice = run_example(
      ATTNGUARD_GTEST_EXAMPLE,
      "--gtest_repeat=2 --gtest_filter='MyAttentionIn/*q5*'", "KERNEL_TELLS=1");
  EXPECT_EQ(twice.count("call\n"), 2 * all.count("call\n"));
}

TEST(GtestExample, ShardsArePartsOfTheWhole) {
  const char* filter = "--gtest_filter='MyAttentionIn/*'";
  std::multiset<std::string> parts;
  const auto add = [&parts](const Ran& ran) {
    EXPECT_EQ(ran.code, 0) << ran.text;
    std::istringstream lines(ran.text);
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("[ RUN      ] ")) parts.insert(line.substr(13));
  };
  for (int shard = 0; shard < 3; ++shard)
    add(run_example(
        ATTNGUARD_GTEST_EXAMPLE, filter,
        "GTEST_TOTAL_SHARDS=3 GTEST_SHARD_INDEX=" + std::to_string(shard)));
  const std::multiset<std::string> sharded = std::move(parts);
  parts.clear();
  add(run_example(ATTNGUARD_GTEST_EXAMPLE, filter));
  EXPECT_EQ(sharded, parts);
  EXPECT_GT(parts.size(), 20u);
}

TEST(GtestExample, FailuresReadLikeAReportAndReplay) {
  const Ran ran = run_example(ATTNGUARD_GTEST_EXAMPLE_LEAKS,
                              "--gtest_filter='MyAttentionIn/*q5*.visibility'");
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.text,
              AllOf(HasSubstr("move when later tokens change"),
                    HasSubstr("query 0  # X . . ."), HasSubstr("example.cc:"),
                    HasSubstr("--gtest_filter=")));
  const std::size_t at = ran.text.find("--gtest_filter=MyAttentionIn/");
  ASSERT_NE(at, std::string::npos) << ran.text;
  const Ran again =
      run_example(ATTNGUARD_GTEST_EXAMPLE_LEAKS,
                  ran.text.substr(at, ran.text.find('\n', at) - at));
  EXPECT_EQ(again.code, 1) << again.text;
  EXPECT_THAT(again.text, HasSubstr("Running 1 test from 1 test suite"));
}

TEST(GtestExample, TheMatcherExplains) {
  const Ran ran = run_example(ATTNGUARD_GTEST_EXAMPLE_LEAKS,
                              "--gtest_filter=MyAttention.IsCausal");
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.text, AllOf(HasSubstr("Expected: is causal"),
                              HasSubstr("Actual: engine 'my_attention'"),
                              HasSubstr("attnguard::PassesProblem(")));
}

TEST(GtestExample, XmlComesForFree) {
  const std::string file = testing::TempDir() + "attnguard-gtest-example.xml";
  run_example(ATTNGUARD_GTEST_EXAMPLE_LEAKS,
              "--gtest_filter='MyAttentionIn/*q5*.row_sum:"
              "MyAttentionIn/*q5*.visibility' --gtest_output=xml:" +
                  file);
  pugi::xml_document document;
  ASSERT_TRUE(document.load_file(file.c_str()));
  std::filesystem::remove(file);
  int failures = 0, cases = 0;
  for (const auto& suite : document.child("testsuites").children("testsuite"))
    for (const auto& test : suite.children("testcase")) {
      ++cases;
      failures += test.child("failure") ? 1 : 0;
      const auto property = test.child("properties").child("property");
      EXPECT_STREQ(property.attribute("name").value(), "problem");
      EXPECT_THAT(property.attribute("value").value(),
                  HasSubstr("seq_len_q=5"));
    }
  EXPECT_EQ(cases, 2);
  EXPECT_EQ(failures, 1);
}

}  // namespace
}  // namespace attnguard
