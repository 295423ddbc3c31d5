// Every check against engines that are right and engines that are wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "guard/base/rng.h"
#include "guard/check/check.h"
#include "tests/support/engines.h"

namespace attnguard {
namespace {

using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> failing(const ProblemResult& result) {
  std::vector<std::string> ids;
  for (const CheckResult& check : result.checks)
    if (check.verdict == Verdict::kViolation) ids.push_back(check.check);
  return ids;
}

constexpr char kCausalTopLeft[] =
    "batch=2 num_heads=6 num_kv_heads=2 seq_len=65 head_dim=64 "
    "mask=causal_top_left";

TEST(Checks, EveryCheckPassesOnACorrectEngineAndSaysWhatItCovered) {
  const ProblemResult result = run_problem(builtin("textbook"), kCausalTopLeft);
  EXPECT_EQ(result.verdict, Verdict::kPass) << findings_text(result);
  EXPECT_EQ(result.checks.size(), all_checks().size());
  const std::set<std::string> not_here = {
      "empty-row", "unused-slots", "unused-slots-nan",
      "weights",   "lse",          "cache-write"};
  for (const CheckResult& check : result.checks) {
    const bool applies = not_here.count(check.check) == 0;
    EXPECT_EQ(check.verdict, applies ? Verdict::kPass : Verdict::kNotApplicable)
        << check.check;
    EXPECT_EQ(check.coverage.empty(), !applies) << check.check;
  }
}

// The known-bad engines and the checks that must see each; others may.
struct BadEngineCase {
  const char* engine;
  std::vector<std::string> seen_by;
};

void PrintTo(const BadEngineCase& bad, std::ostream* to) {
  *to << bad.engine << ", seen by";
  for (const std::string& check : bad.seen_by) *to << ' ' << check;
}

class BadEngine : public testing::TestWithParam<BadEngineCase> {};

TEST_P(BadEngine, IsSeenByTheChecksThatShould) {
  const ProblemResult result =
      run_problem(builtin(GetParam().engine), kCausalTopLeft);
  EXPECT_EQ(result.verdict, Verdict::kViolation) << findings_text(result);
  EXPECT_THAT(failing(result), testing::IsSupersetOf(GetParam().seen_by))
      << findings_text(result);
}

INSTANTIATE_TEST_SUITE_P(
    Builtin, BadEngine,
    testing::Values(
        BadEngineCase{"wrong_axis",
                      {"future-influence", "row-sum", "reference"}},
        BadEngineCase{"no_mask",
                      {"future-influence", "visibility", "reference"}},
        BadEngineCase{"causal_off_by_one", {"future-influence", "visibility"}},
        BadEngineCase{"mask_after_softmax", {"future-influence", "row-sum"}},
        BadEngineCase{"drops_last_key", {"visibility", "reference"}},
        BadEngineCase{"drops_last_tile", {"visibility", "reference"}},
        BadEngineCase{"wrong_kv_head", {"visibility", "reference"}},
        BadEngineCase{"wrong_scale", {"reference"}},
        BadEngineCase{"stale_row", {"memory", "finite"}},
        BadEngineCase{"overwrites_input", {"memory"}},
        BadEngineCase{"overruns", {"memory"}},
        BadEngineCase{"nondeterministic", {"repeatable"}}),
    [](const auto& tested) { return std::string(tested.param.engine); });

TEST(FutureInfluence, NamesTheRowAndTheFirstChangedToken) {
  const ProblemResult result =
      run_problem(builtin("wrong_axis"), kCausalTopLeft, {"future-influence"});
  const CheckResult& check = expect_check(result, "future-influence");
  ASSERT_FALSE(check.findings.empty());
  const Finding& first = check.findings.front();
  EXPECT_EQ(first.kind, FindingKind::kLeak);
  EXPECT_EQ(first.query, 0);
  EXPECT_GT(first.key, first.query);
  EXPECT_GT(first.observed, 0);
  EXPECT_EQ(first.bound, 0);
  EXPECT_THAT(first.message, HasSubstr("query 0: output moves by"));
}

TEST(FutureInfluence, SeesOtherQueriesInAnEncoderWithoutAnyFuture) {
  const ProblemResult result =
      run_problem(builtin("wrong_axis"), "num_heads=2 seq_len=33 mask=full",
                  {"future-influence"});
  const CheckResult& check = expect_check(result, "future-influence");
  ASSERT_EQ(check.verdict, Verdict::kViolation);
  EXPECT_THAT(check.findings.front().message,
              HasSubstr("when other rows' queries change"));
}

TEST(FutureInfluence, JudgesARowThatSeesOneOfSixKeys) {
  const char* line = "seq_len_q=1 seq_len_kv=6 mask=causal_top_left";
  const ProblemResult good =
      run_problem(builtin("textbook"), line, {"future-influence"});
  EXPECT_EQ(good.verdict, Verdict::kPass) << findings_text(good);
  const ProblemResult bad =
      run_problem(builtin("no_mask"), line, {"future-influence"});
  EXPECT_EQ(bad.verdict, Verdict::kViolation) << findings_text(bad);
}

TEST(FutureInfluence, IsInconclusiveWhenNothingMoves) {
  Engine constant{.name = "test:constant", .run = [](const AttentionCall& c) {
                    const Problem& p = *c.problem;
                    const std::vector<double> row(
                        static_cast<std::size_t>(p.head_dim_v), 0.5);
                    for (std::int64_t i = 0; i < p.len_q(0); ++i)
                      c.output.store_row(0, 0, i, 0, p.head_dim_v, row.data());
                    return ok_status();
                  }};
  const ProblemResult result = run_problem(
      constant, "seq_len=33 mask=causal_top_left", {"future-influence"});
  EXPECT_EQ(result.verdict, Verdict::kInconclusive);
  EXPECT_THAT(result.checks.front().note, HasSubstr("did not move"));
}

TEST(FutureInfluence, DoesNotApplyWhereNothingIsShielded) {
  const ProblemResult result =
      run_problem(builtin("textbook"), "seq_len_q=1 seq_len_kv=9 mask=full",
                  {"future-influence"});
  EXPECT_EQ(result.verdict, Verdict::kNotApplicable);
  EXPECT_THAT(result.checks.front().note, HasSubstr("no row is shielded"));
}

TEST(RowSum, GivesTheSumAndTheBound) {
  const ProblemResult result =
      run_problem(builtin("wrong_axis"), kCausalTopLeft, {"row-sum"});
  const CheckResult& check = expect_check(result, "row-sum");
  ASSERT_FALSE(check.findings.empty());
  const Finding& finding = check.findings.front();
  EXPECT_EQ(finding.kind, FindingKind::kMass);
  EXPECT_EQ(finding.expected, 1);
  EXPECT_GT(std::abs(finding.observed - 1), finding.bound);
  EXPECT_LT(finding.bound, 1e-5);
  EXPECT_THAT(finding.message, HasSubstr("weights sum to"));
}

TEST(RowSum, ANumberInThePolicyReplacesTheBound) {
  Settings settings;
  settings.checks["row-sum"].tolerances[Dtype::kFp32] = {
      Tolerance::Kind::kNumber, 1e6};
  RunOptions options{.checks = {"row-sum"}};
  const ProblemResult result = verify_problem(
      builtin("wrong_axis"), problem_of(kCausalTopLeft), settings, options);
  EXPECT_EQ(result.verdict, Verdict::kPass);
}

TEST(Severity, AWarningDoesNotFailAndAnOffCheckDoesNotRun) {
  Settings settings;
  settings.checks["repeatable"].severity = Severity::kWarning;
  settings.checks["memory"].severity = Severity::kOff;
  const ProblemResult result = verify_problem(
      builtin("nondeterministic"), problem_of(kCausalTopLeft), settings,
      {.checks = {"repeatable", "memory", "row-sum"}, .draw_maps = false});
  EXPECT_EQ(result.verdict, Verdict::kPass) << findings_text(result);
  EXPECT_EQ(expect_check(result, "repeatable").verdict, Verdict::kViolation);
  EXPECT_EQ(check_of(result, "memory"), nullptr);
}

TEST(NonDeterministicEngine, IsJudgedByItsOwnNoise) {
  Engine noisy = builtin("nondeterministic");
  noisy.capabilities.deterministic = false;
  const ProblemResult result = run_problem(noisy, kCausalTopLeft);
  EXPECT_EQ(result.verdict, Verdict::kPass) << findings_text(result);
  EXPECT_EQ(expect_check(result, "repeatable").verdict,
            Verdict::kNotApplicable);
}

TEST(Checks, NothingToJudgeIsNeverAPass) {
  for (const char* line :
       {"seq_len_q=0 seq_len_kv=5", "seq_len_q=4 seq_len_kv=0"}) {
    const ProblemResult result = run_problem(builtin("textbook"), line);
    for (const CheckResult& check : result.checks) {
      // Rows without a key are all that there is to judge.
      if ((check.check == "memory" || check.check == "empty-row") &&
          check.verdict == Verdict::kPass)
        continue;
      EXPECT_EQ(check.verdict, Verdict::kNotApplicable) << check.check;
    }
  }
}

TEST(Checks, IdsAreTheFileStemsInKebabCaseAndExplainThemselves) {
  for (const CheckInfo* info : all_checks()) {
    const std::string id(info->id);
    EXPECT_EQ(find_check(id), info);
    EXPECT_EQ(info->explanation.substr(0, id.size() + 1), id + ":");
    EXPECT_FALSE(info->summary.empty());
    EXPECT_FALSE(info->cost.empty());
  }
  EXPECT_EQ(find_check("row_sum"), nullptr);
}

// A single head and few cuts: each of these once slipped through.
TEST(FutureInfluence, SeesALeakWhereTheEarlyKeysAreVisibleToEveryRow) {
  for (const char* line :
       {"num_heads=1 seq_len_q=16 seq_len_kv=300 mask=causal_bottom_right",
        "num_heads=1 seq_len_q=32 seq_len_kv=512 mask=causal_bottom_right"})
    for (const char* engine : {"no_mask", "causal_off_by_one"}) {
      const ProblemResult result =
          run_problem(builtin(engine), line, {"future-influence"});
      EXPECT_EQ(result.verdict, Verdict::kViolation) << engine << "\n"
                                                     << findings_text(result);
    }
}

TEST(FutureInfluence, IsInconclusiveWhenOneHeadIgnoresItsInputs) {
  Engine engine = builtin("textbook");
  const AttentionCallback textbook = engine.run;
  engine.run = [textbook](const AttentionCall& call) {
    const Status status = textbook(call);
    const Problem& p = *call.problem;
    const std::vector<double> row(static_cast<std::size_t>(p.head_dim_v), 1.0);
    for (std::int64_t i = 0; i < p.len_q(0); ++i)
      call.output.store_row(0, 1, i, 0, p.head_dim_v, row.data());
    return status;
  };
  const ProblemResult result =
      run_problem(engine, "num_heads=3 seq_len=20 mask=causal_top_left",
                  {"future-influence"});
  EXPECT_EQ(result.verdict, Verdict::kInconclusive) << findings_text(result);
}

TEST(FutureInfluence, IsInconclusiveOnAnEngineThatIsAllNoise) {
  Engine noise{
      .name = "test:noise", .run = [](const AttentionCall& call) {
        static std::uint64_t counter = 0;
        const Problem& p = *call.problem;
        std::vector<double> row(static_cast<std::size_t>(p.head_dim_v));
        for (std::int64_t i = 0; i < p.len_q(0); ++i) {
          for (double& x : row) x = near_normal(mix_bits(counter++));
          call.output.store_row(0, 0, i, 0, p.head_dim_v, row.data());
        }
        return ok_status();
      }};
  noise.capabilities.deterministic = false;
  const ProblemResult result = run_problem(
      noise, "seq_len=20 mask=causal_top_left", {"future-influence"});
  EXPECT_EQ(result.verdict, Verdict::kInconclusive) << findings_text(result);
  EXPECT_THAT(result.checks.front().note, HasSubstr("too much noise"));
}

TEST(Checks, AnOutputOfOnesIsNoEvidence) {
  Engine ones{.name = "test:ones", .run = [](const AttentionCall& call) {
                const Problem& p = *call.problem;
                const std::vector<double> row(
                    static_cast<std::size_t>(p.head_dim_v), 1.0);
                for (std::int64_t i = 0; i < p.len_q(0); ++i)
                  call.output.store_row(0, 0, i, 0, p.head_dim_v, row.data());
                return ok_status();
              }};
  for (const char* check : {"row-sum", "finite", "repeatable"}) {
    const ProblemResult result =
        run_problem(ones, "seq_len=20 mask=causal_top_left", {check});
    EXPECT_EQ(result.verdict, Verdict::kInconclusive) << check;
  }
}

TEST(Reference, SamplesOnlyRowsThatExist) {
  const ProblemResult result = run_problem(
      builtin("tiled"),
      "batch=2 num_heads=1 seq_len_q=0,512 seq_len_kv=1024 mask=full",
      {"reference"});
  EXPECT_EQ(result.verdict, Verdict::kPass) << findings_text(result);
  EXPECT_THAT(result.checks.front().coverage, HasSubstr(" of 512 rows"));
}

TEST(MemoryCheck, NamesTheTensorAndTheOffset) {
  const ProblemResult result =
      run_problem(builtin("overruns"), "seq_len=5 head_dim=8", {"memory"});
  ASSERT_FALSE(result.checks.front().findings.empty());
  const Finding& finding = result.checks.front().findings.front();
  EXPECT_EQ(finding.tensor, "output");
  EXPECT_EQ(finding.element, 40);
  EXPECT_EQ(finding.head, -1);
  EXPECT_EQ(finding.query, -1);
  EXPECT_EQ(finding.key, -1);
}

TEST(Pipeline, KeepsAViolationThatWasFoundBeforeTheEngineFailed) {
  Engine engine = builtin("wrong_axis");
  const AttentionCallback wrong = engine.run;
  auto calls = std::make_shared<int>(0);
  engine.run = [wrong, calls](const AttentionCall& call) {
    if (++*calls == 4) return Status(StatusCode::kEngineFailure, "lost");
    return wrong(call);
  };
  const ProblemResult result = run_problem(engine, kCausalTopLeft);
  EXPECT_EQ(result.verdict, Verdict::kViolation) << findings_text(result);
  EXPECT_THAT(result.note, HasSubstr("lost"));
  for (const CheckResult& check : result.checks)
    EXPECT_EQ(check.verdict, Verdict::kViolation) << check.check;
}

TEST(Pipeline, AnEngineWhoseHooksThrowIsAnEngineError) {
  Engine engine = builtin("textbook");
  engine.capabilities.numerics = [](const Problem&) -> Numerics { throw 42; };
  EXPECT_EQ(run_problem(engine, kCausalTopLeft).verdict, Verdict::kEngineError);
}

TEST(Pipeline, AReplayNamesThePolicyTheCoverageAndQuotesTheEngine) {
  Policy policy;
  policy.name = "my policy.yaml";
  SettingsPatch patch;
  patch.coverage = Coverage::kSampled;
  policy.patches.push_back(patch);
  policy.problems.push_back({problem_of("seq_len=9 mask=causal_top_left"), {}});
  Engine engine = builtin("wrong_axis");
  engine.name = "mine,path=/a b";
  const RunResult run = verify(engine, policy);
  ASSERT_EQ(run.problems.size(), 1u);
  EXPECT_THAT(run.problems[0].replay,
              testing::AllOf(HasSubstr("--engine 'mine,path=/a b'"),
                             HasSubstr("--policy 'my policy.yaml'"),
                             HasSubstr("--coverage sampled")));
}

}  // namespace
}  // namespace attnguard
