// What the matchers claim, and whether it holds.
#include <utility>

#include "adapters/gtest/group_name.h"
#include "adapters/gtest/suite.h"
#include "guard/base/text.h"
#include "guard/check/check.h"
#include "guard/pipeline.h"
#include "guard/policy/policy_yaml.h"

namespace attnguard {
namespace {

// What IsCausal tries at most: tile edges, in seconds.
constexpr std::int64_t kMostCausalKeys = 130;

std::string list_of(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words)
    text += (text.empty() ? "" : ", ") + word;
  return text;
}

// The command that replays a finding opens engines by their specification; a
// callback in a test has none, but a matcher can run the same problem.
bool is_specification(const std::string& engine) {
  return engine.find(':') != std::string::npos;
}

void adapt_replays(RunResult& run) {
  if (is_specification(run.engine)) return;
  for (ProblemResult& problem : run.problems) {
    if (problem.replay.empty()) continue;
    const std::string& line = problem.smallest_failing.empty()
                                  ? problem.problem_line
                                  : problem.smallest_failing;
    problem.replay = "EXPECT_THAT(engine, attnguard::PassesProblem(\"" + line +
                     "\", " + std::to_string(run.seed) + "));";
  }
}

}  // namespace

TestPolicy::TestPolicy() : policy_(default_policy()) {}

TestPolicy::TestPolicy(Policy policy) : policy_(std::move(policy)) {}

TestPolicy::TestPolicy(const char* path) : TestPolicy(std::string(path)) {}

TestPolicy::TestPolicy(const std::string& path) {
  PolicyParse parse = load_policy(path, check_ids());
  policy_ = std::move(parse.policy);
  if (!policy_) error_ = format_diagnostics(parse.diagnostics);
}

EngineClaim claim_policy(TestPolicy policy, std::vector<std::string> checks) {
  EngineClaim claim;
  claim.policy = std::move(policy);
  claim.checks = std::move(checks);
  claim.error = claim.policy.error();
  const std::string name =
      claim.policy.policy() ? claim.policy.policy()->name : "unreadable";
  std::string what = "the policy '" + name + "'";
  if (!claim.checks.empty()) what = list_of(claim.checks) + " of " + what;
  claim.says = "passes " + what;
  claim.denies = "does not pass " + what;
  return claim;
}

EngineClaim claim_problem(const std::string& line, std::uint64_t seed) {
  Policy policy = default_policy();
  policy.problems.clear();
  policy.seed = seed;
  const Result<Problem> problem = Problem::parse(line);
  if (problem.ok()) policy.problems.push_back({problem.value(), {}});
  EngineClaim claim = claim_policy(std::move(policy), {});
  if (!problem.ok())
    claim.error = "'" + line + "' is no problem: " + problem.status().message();
  claim.says = "passes the problem '" + line + "'";
  claim.denies = "does not pass the problem '" + line + "'";
  return claim;
}

EngineClaim claim_causal() {
  Policy policy = default_policy();
  std::erase_if(policy.problems, [](const PolicyProblem& each) {
    const std::string mask = each.problem.mask.text();
    return (mask != "causal_bottom_right" && mask != "causal_top_left") ||
           each.problem.max_len_kv() > kMostCausalKeys;
  });
  EngineClaim claim =
      claim_policy(std::move(policy),
                   {"future-influence", "amplitude", "visibility", "row-sum"});
  claim.says =
      "is causal: no row moves when later tokens change, each sees all earlier "
      "keys, and its weights sum to 1";
  claim.denies = "is not causal";
  return claim;
}

ClaimJudgement judge_claim(const EngineClaim& claim, const Engine& engine) {
  ClaimJudgement judgement;
  if (!claim.error.empty() || !claim.policy.policy()) {
    judgement.explanation = claim.error;
    return judgement;
  }
  RunOptions options;
  options.checks = claim.checks;
  RunResult run = verify(engine, *claim.policy.policy(), options);
  judgement.holds = run.verdict == Verdict::kPass;
  judgement.judged = judgement.holds || run.verdict == Verdict::kViolation;
  adapt_replays(run);
  judgement.explanation = render_test_report(run);
  return judgement;
}

}  // namespace attnguard
