// What the GoogleTest adapter knows without GoogleTest: which tests a policy
// makes of an engine, what each of them says, and what a matcher explains.
// Compiled once; adapters/gtest/gtest.h is the part that includes the caller's
// GoogleTest, of whatever release.
#ifndef ATTNGUARD_ADAPTERS_GTEST_SUITE_H_
#define ATTNGUARD_ADAPTERS_GTEST_SUITE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "guard/engine/engine.h"
#include "guard/finding/result.h"
#include "guard/policy/policy.h"

namespace attnguard {

// A policy as tests name it: a finished one, or a file that is read when the
// test runs.
class TestPolicy {
 public:
  TestPolicy();                         // The built-in policy.
  TestPolicy(Policy policy);            // NOLINT: implicit, for the macros.
  TestPolicy(const char* path);         // NOLINT
  TestPolicy(const std::string& path);  // NOLINT

  // nullopt: the file is wrong, and error() says where and how.
  const std::optional<Policy>& policy() const { return policy_; }
  const std::string& error() const { return error_; }

 private:
  std::optional<Policy> policy_;
  std::string error_;
};

// What a matcher claims of an engine.
struct EngineClaim {
  TestPolicy policy;
  std::vector<std::string> checks;  // Only these ids; empty: all.
  std::string error;                // Not empty: the claim makes no sense.
  std::string says;                 // "passes the policy 'a.yaml'"
  std::string denies;               // "does not pass ..."
};

EngineClaim claim_policy(TestPolicy policy, std::vector<std::string> checks);

// The problem line under the built-in policy's settings.
EngineClaim claim_problem(const std::string& line, std::uint64_t seed);

// The causal problems of the built-in policy, the long ones left out: no row
// moves when later tokens change, every row sees all keys that it may and no
// other, weights sum to 1.
EngineClaim claim_causal();

struct ClaimJudgement {
  bool holds = false;       // Only a pass: no evidence does not hold.
  bool judged = false;      // There is evidence, for the claim or against it.
  std::string explanation;  // The text report, or why there is none.
};

// Runs the engine. Never throws.
ClaimJudgement judge_claim(const EngineClaim& claim, const Engine& engine);

struct TestOutcome {
  enum class Kind { kPass, kFail, kSkip };
  Kind kind = Kind::kFail;
  std::string text;  // Why; of a pass: findings that the policy only warns of.
};

// One engine under one policy as groups of tests: a group for each problem,
// and in it a test for each check that says something about the problem.
class AttentionSuite {
 public:
  struct Group {
    std::string name;  // "b1_h8x2_q1_kv64_d64_fp16_causal_bottom_right"
    Problem problem;
    std::string line;         // problem.text()
    std::string unsupported;  // Why the engine does not take it; no tests then.
    std::vector<std::string> checks;
  };

  // `checks`: only these ids; empty: all that the policy has not turned off.
  // Never throws.
  AttentionSuite(Engine engine, const TestPolicy& policy,
                 const std::vector<std::string>& checks);

  const std::vector<Group>& groups() const { return groups_; }

  // Empty, or why this suite is none: the policy cannot be read, a check is
  // unknown, or nothing in it can be checked.
  const std::string& error() const { return error_; }

  // The outcome of one test. The engine runs once for `together`, the group's
  // checks that are wanted at all, and again only after forget(). `replay` is
  // what a failure says reproduces it.
  TestOutcome outcome(std::size_t group, const std::string& check,
                      const std::vector<std::string>& together,
                      const std::string& replay);

  void forget() { result_.reset(); }

 private:
  void add_group(const Problem& problem,
                 const std::vector<std::string>& checks);
  void run(std::size_t group, const std::vector<std::string>& checks);

  Engine engine_;
  Settings settings_;
  std::string policy_name_;
  std::vector<Group> groups_;
  std::string error_;

  // The problem at work; GoogleTest finishes a group before the next one.
  std::optional<ProblemResult> result_;
  std::size_t result_group_ = 0;
  std::vector<std::string> result_checks_;
  int explained_ = 0;  // Failing problems that were diagnosed.
};

// "row-sum" as part of a C++ name: "row_sum".
std::string test_name_of(const std::string& check);

// The program and the filter that runs one test again.
std::string replay_of_test(const std::string& full_test_name);

}  // namespace attnguard

#endif  // ATTNGUARD_ADAPTERS_GTEST_SUITE_H_
