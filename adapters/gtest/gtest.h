// attnguard in GoogleTest, from 1.12 on: matchers, and a suite with one test
// for each problem and check.
//
//   TEST(MyAttention, SeesNoFuture) {
//     EXPECT_THAT(my_engine(), attnguard::IsCausal());
//   }
//   ATTNGUARD_TESTS(MyAttention, my_engine(), "attention.yaml");
//
// Link attnguard::gtest and your own GTest::gtest (GTest::gmock has
// EXPECT_THAT). Only this header sees GoogleTest, so that any release and any
// flags of it do.
#ifndef ATTNGUARD_ADAPTERS_GTEST_GTEST_H_
#define ATTNGUARD_ADAPTERS_GTEST_GTEST_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "adapters/gtest/suite.h"

namespace attnguard {

// What EXPECT_THAT prints of an engine.
inline void PrintTo(const Engine& engine, std::ostream* out) {
  *out << "engine '" << engine.name << "'";
}

// Matches engines. What it explains is the text report: findings, influence
// map, what the engine behaves like, and how to replay it.
class EngineMatcher {
 public:
  using is_gtest_matcher = void;

  explicit EngineMatcher(EngineClaim claim) : claim_(std::move(claim)) {}

  bool MatchAndExplain(const Engine& engine,
                       testing::MatchResultListener* listener) const {
    const ClaimJudgement judgement = judge_claim(claim_, engine);
    // Not(...) turns what does not match into a match: without evidence neither
    // may pass.
    if (!judgement.judged)
      ADD_FAILURE() << "no evidence either way\n" << judgement.explanation;
    *listener << "which gave\n" << judgement.explanation;
    return judgement.holds;
  }
  void DescribeTo(std::ostream* out) const { *out << claim_.says; }
  void DescribeNegationTo(std::ostream* out) const { *out << claim_.denies; }

 private:
  EngineClaim claim_;
};

// The engine passes a policy: the built-in one, a file's, or one that was made
// by hand; or only some of its checks. No evidence is not a pass.
inline EngineMatcher PassesPolicy(TestPolicy policy = {},
                                  std::vector<std::string> checks = {}) {
  return EngineMatcher(claim_policy(std::move(policy), std::move(checks)));
}

// The engine passes one problem line under the built-in policy: what failures
// of the others say replays them.
inline EngineMatcher PassesProblem(const std::string& line,
                                   std::uint64_t seed = 1) {
  return EngineMatcher(claim_problem(line, seed));
}

// No row moves when later tokens change, every row sees exactly the keys up to
// its own, and its weights sum to 1, on the built-in causal problems of up to
// 130 keys that the engine takes.
inline EngineMatcher IsCausal() { return EngineMatcher(claim_causal()); }

// One test of a suite: see register_attention_tests.
class AttentionTest : public testing::Test {
 public:
  AttentionTest(std::shared_ptr<AttentionSuite> suite, std::size_t group,
                std::string check)
      : suite_(std::move(suite)), group_(group), check_(std::move(check)) {}

  void TestBody() override {
    running() = suite_;
    RecordProperty("problem", suite_->groups()[group_].line);
    const testing::UnitTest& all = *testing::UnitTest::GetInstance();
    const testing::TestInfo& own = *all.current_test_info();
    const TestOutcome outcome = suite_->outcome(
        group_, check_, wanted_checks(*all.current_test_suite()),
        replay_of_test(std::string(own.test_suite_name()) + "." + own.name()));
    switch (outcome.kind) {
      case TestOutcome::Kind::kPass:
        if (!outcome.text.empty())
          RecordProperty("attnguard_warning", outcome.text);
        return;
      case TestOutcome::Kind::kSkip:
        GTEST_SKIP() << outcome.text;
      case TestOutcome::Kind::kFail:
        ADD_FAILURE_AT(own.file(), own.line()) << outcome.text;
    }
  }

  // With --gtest_repeat every round runs the engine.
  static void TearDownTestSuite() {
    if (const auto suite = running().lock()) suite->forget();
  }

 private:
  static std::weak_ptr<AttentionSuite>& running() {
    static std::weak_ptr<AttentionSuite> suite;
    return suite;
  }

  // The group's checks that filters and sharding left: one run judges them all.
  std::vector<std::string> wanted_checks(
      const testing::TestSuite& tests) const {
    std::vector<std::string> wanted;
    for (const std::string& check : suite_->groups()[group_].checks)
      for (int i = 0; i < tests.total_test_count(); ++i) {
        const testing::TestInfo& info = *tests.GetTestInfo(i);
        if (info.should_run() && test_name_of(check) == info.name())
          wanted.push_back(check);
      }
    return wanted;
  }

  std::shared_ptr<AttentionSuite> suite_;
  std::size_t group_;
  std::string check_;
};

// A suite that cannot run, as one test that fails.
class BrokenAttentionTest : public testing::Test {
 public:
  explicit BrokenAttentionTest(std::string error) : error_(std::move(error)) {}
  void TestBody() override { GTEST_FAIL() << error_; }

 private:
  std::string error_;
};

// Registers a suite "NAME/<problem>" for each problem, with a test for each
// check that says something about it: NAME/b1_h8x2_...row_sum. Problems that
// the engine does not take have one test, "supported", which is skipped with
// the reason. Where nothing can be checked there is one test that fails. The
// engine runs once per problem, however many of its tests run. Call it before
// RUN_ALL_TESTS; ATTNGUARD_TESTS does. Returns the number of tests.
inline int register_attention_tests(const std::string& name, Engine engine,
                                    const TestPolicy& policy = {},
                                    const std::vector<std::string>& checks = {},
                                    const char* file = __builtin_FILE(),
                                    int line = __builtin_LINE()) {
  auto suite =
      std::make_shared<AttentionSuite>(std::move(engine), policy, checks);
  if (!suite->error().empty()) {
    testing::RegisterTest((name + "/all").c_str(), "can_be_checked", nullptr,
                          nullptr, file, line,
                          [error = suite->error()]() -> BrokenAttentionTest* {
                            return new BrokenAttentionTest(error);
                          });
    return 1;
  }
  int count = 0;
  for (std::size_t g = 0; g < suite->groups().size(); ++g) {
    const AttentionSuite::Group& group = suite->groups()[g];
    std::vector<std::string> tests = group.checks;
    if (!group.unsupported.empty()) tests = {"supported"};
    for (const std::string& check : tests) {
      testing::RegisterTest((name + "/" + group.name).c_str(),
                            test_name_of(check).c_str(), nullptr, nullptr, file,
                            line, [suite, g, check]() -> AttentionTest* {
                              return new AttentionTest(suite, g, check);
                            });
      ++count;
    }
  }
  return count;
}

}  // namespace attnguard

// ATTNGUARD_TESTS(Name, engine [, policy [, checks]]): at namespace scope, so
// that it works with GTest::gtest_main. See register_attention_tests.
#define ATTNGUARD_TESTS(name, ...)                           \
  [[maybe_unused]] static const int attnguard_tests_##name = \
      attnguard::register_attention_tests(#name, __VA_ARGS__)

#endif  // ATTNGUARD_ADAPTERS_GTEST_GTEST_H_
