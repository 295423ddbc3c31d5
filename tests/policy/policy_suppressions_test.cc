// Suppressions: how they are read, what they accept, when they end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "guard/engine/reference.h"
#include "guard/pipeline.h"
#include "guard/policy/suppress.h"
#include "tests/policy/policy_testing.h"

namespace attnguard {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kTwo =
    "version: 1\n"
    "suppressions:\n"
    "  - check: row-sum\n"
    "    engine: \"ggml:*\"\n"
    "    problem: \"*seq_len_kv=8192*\"\n"
    "    kind: mass\n"
    "    reason: \"upstream: bug 17746\"\n"
    "    expires: 2027-03-31\n"
    "  - {check: \"*\", reason: later}\n";

std::vector<Suppression> suppressions_of(std::string_view text) {
  const PolicyParse result = parse(text);
  EXPECT_EQ(format_diagnostics(result.diagnostics), "");
  return result.policy ? result.policy->suppressions
                       : std::vector<Suppression>();
}

TEST(Suppressions, AreReadWithTheirPlaces) {
  const auto all = suppressions_of(kTwo);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].check, "row-sum");
  EXPECT_EQ(all[0].kind, "mass");
  EXPECT_EQ(all[0].reason, "upstream: bug 17746");
  EXPECT_EQ(date_text(*all[0].expires), "2027-03-31");
  EXPECT_EQ(all[0].location, (SourceLocation{"policy.yaml", 3, 5}));
  EXPECT_EQ(all[1].engine, "*");
  EXPECT_FALSE(all[1].expires);
}

TEST(Suppressions, RoundTripThroughPrinting) {
  const Policy policy = *parse(kTwo).policy;
  const auto again = suppressions_of(print_policy(policy));
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(again[0].problem, "*seq_len_kv=8192*");
  EXPECT_EQ(again[0].expires, policy.suppressions[0].expires);
  EXPECT_EQ(again[1].check, "*");
}

TEST(Suppressions, ReachOnlyTheirEngines) {
  const Policy policy = *parse(kTwo).policy;
  EXPECT_EQ(policy.resolve("ggml:flash").suppressions.size(), 2u);
  EXPECT_EQ(policy.resolve("mine").suppressions.size(), 1u);
}

std::vector<std::string> errors_in(std::string_view entry) {
  return errors("version: 1\nsuppressions:\n  - " + std::string(entry) + "\n");
}

TEST(Suppressions, SayWhatIsWrong) {
  EXPECT_THAT(errors_in("{check: row-sum}"),
              ElementsAre("3:5 the suppression has no 'reason'; add a line "
                          "'reason: ...'"));
  EXPECT_THAT(errors_in("{reason: x}"),
              ElementsAre(HasSubstr("has no 'check'")));
  EXPECT_THAT(errors_in("{check: row-sums, reason: x}"),
              ElementsAre("3:13 check: no check fits 'row-sums'; did you mean "
                          "'row-sum'?"));
  EXPECT_THAT(errors_in("{check: row-sum, reason: x, kind: mas}"),
              ElementsAre(HasSubstr("did you mean 'mass'?")));
  EXPECT_THAT(errors_in("{check: row-sum, reason: x, expires: 2027-02-30}"),
              ElementsAre(HasSubstr("expected a day such as 2027-03-31")));
  EXPECT_THAT(errors_in("{check: row-sum, reason: ' '}"),
              ElementsAre(HasSubstr("expected a text, got an empty one")));
  EXPECT_THAT(errors_in("{check: row-sum, reason: x, enigne: y}"),
              ElementsAre(HasSubstr("did you mean 'engine'?")));
  EXPECT_THAT(errors_in("{check: [a], reason: x}"),
              ElementsAre(HasSubstr("expected a text, got a list")));
  EXPECT_THAT(errors_in("row-sum"),
              ElementsAre(HasSubstr("expected a map of check, reason")));
  EXPECT_THAT(errors("version: 1\nsuppressions: {}\n"),
              ElementsAre(HasSubstr("expected a list")));
  EXPECT_THAT(errors("version: 1\nengines: {a: {suppressions: []}}\n"),
              ElementsAre(HasSubstr("cannot differ by engine")));
}

// A problem of one check with two kinds of findings.
ProblemResult two_kinds() {
  ProblemResult problem;
  problem.problem_line = "batch=1 seq_len_q=5";
  CheckResult& check = problem.checks.emplace_back();
  check.check = "visibility";
  check.verdict = Verdict::kViolation;
  check.num_by_kind = {{FindingKind::kLeak, 70}, {FindingKind::kMiss, 3}};
  check.num_findings = 73;
  check.findings.resize(50);  // All that is kept; the last is a miss.
  check.findings.back().kind = FindingKind::kMiss;
  return problem;
}

Suppression suppression(std::string check, std::string kind = "") {
  Suppression made;
  made.check = std::move(check);
  made.kind = std::move(kind);
  made.reason = "known";
  return made;
}

const Date kToday = *parse_date("2026-06-15");

TEST(SuppressFindings, AcceptsAllFindingsOfAKindThoughOnlySomeAreKept) {
  ProblemResult problem = two_kinds();
  const std::vector<Suppression> only_leaks = {suppression("vis*", "leak")};
  suppress_findings(only_leaks, kToday, problem);
  const CheckResult& check = problem.checks[0];
  EXPECT_EQ(check.num_suppressed, 70);
  EXPECT_FALSE(check.suppressed());
  EXPECT_EQ(combine_checks(problem.checks), Verdict::kViolation);
  EXPECT_EQ(check.findings.front().suppressed, "known");
  EXPECT_EQ(check.findings.back().suppressed, "");
}

TEST(SuppressFindings, ACheckWithNothingLeftHasNoVeto) {
  ProblemResult problem = two_kinds();
  const std::vector<Suppression> both = {suppression("visibility", "miss"),
                                         suppression("*")};
  suppress_findings(both, kToday, problem);
  EXPECT_TRUE(problem.checks[0].suppressed());
  EXPECT_EQ(problem.checks[0].accepted.size(), 2u);
  EXPECT_EQ(combine_checks(problem.checks), Verdict::kPass);
}

TEST(SuppressFindings, FitsCheckAndProblem) {
  for (Suppression other :
       {suppression("row-sum"), suppression("visibility")}) {
    if (other.check == "visibility") other.problem = "*seq_len_q=6*";
    ProblemResult problem = two_kinds();
    suppress_findings({&other, 1}, kToday, problem);
    EXPECT_EQ(problem.checks[0].num_suppressed, 0);
  }
}

TEST(SuppressFindings, HoldsThroughItsLastDay) {
  Suppression until = suppression("*");
  until.expires = kToday;
  EXPECT_FALSE(until.is_expired(kToday));
  EXPECT_TRUE(until.is_expired(*parse_date("2026-06-16")));
}

RunResult settled(const Suppression& one, const Date& today,
                  ProblemResult problem) {
  suppress_findings({&one, 1}, today, problem);
  problem.verdict = combine_checks(problem.checks);
  RunResult run;
  run.problems.push_back(std::move(problem));
  run.verdict = combine_problems(run.problems);
  settle_suppressions({&one, 1}, today, run);
  return run;
}

TEST(SettleSuppressions, AnExpiredOneFailsTheRunEvenWhenNothingIsFound) {
  Suppression old = suppression("visibility");
  old.expires = *parse_date("2026-06-14");
  old.location = {"p.yaml", 7, 5};
  ProblemResult clean;
  clean.checks.push_back({.check = "visibility", .verdict = Verdict::kPass});
  const RunResult run = settled(old, kToday, clean);
  EXPECT_EQ(run.verdict, Verdict::kViolation);
  EXPECT_THAT(run.note, HasSubstr("p.yaml:7:5: the suppression of visibility "
                                  "expired on 2026-06-14 (known)"));
  EXPECT_EQ(verdict_but_findings(run), Verdict::kPass);
}

TEST(SettleSuppressions, SaysWhatIsUsedReachedAndNeither) {
  const RunResult used = settled(suppression("*"), kToday, two_kinds());
  EXPECT_EQ(used.verdict, Verdict::kPass);
  EXPECT_EQ(used.suppressions.at(0).num_findings, 73);
  const RunResult unused =
      settled(suppression("visibility", "mass"), kToday, two_kinds());
  EXPECT_TRUE(unused.suppressions.at(0).reached);
  EXPECT_EQ(unused.suppressions.at(0).num_findings, 0);
  const RunResult elsewhere =
      settled(suppression("row-sum"), kToday, two_kinds());
  EXPECT_FALSE(elsewhere.suppressions.at(0).reached);
}

// The whole way: a leaking engine under a policy.
TEST(SuppressFindings, AreHonouredByVerify) {
  Engine leaking{.name = "leaking"};
  leaking.run = [](const AttentionCall& call) {
    Problem wrong = *call.problem;
    wrong.mask = Mask::parse("full").value();
    AttentionCall other = call;
    other.problem = &wrong;
    return reference_engine().run(other);
  };
  Policy policy;
  policy.problems.push_back(
      {Problem::parse("seq_len=5 head_dim=16 mask=causal_top_left").value()});
  RunOptions options;
  options.draw_maps = false;
  options.checks = {"future-influence", "finite"};
  options.today = kToday;
  const RunResult open = verify(leaking, policy, options);
  EXPECT_EQ(open.verdict, Verdict::kViolation);
  EXPECT_THAT(open.problems[0].replay, HasSubstr("--check future-influence"));
  policy.suppressions = {suppression("future-influence")};
  const RunResult accepted = verify(leaking, policy, options);
  EXPECT_EQ(accepted.verdict, Verdict::kPass);
  EXPECT_GT(accepted.suppressions.at(0).num_findings, 0);
  policy.suppressions[0].expires = *parse_date("2020-01-01");
  EXPECT_EQ(verify(leaking, policy, options).verdict, Verdict::kViolation);
}

}  // namespace
}  // namespace attnguard
