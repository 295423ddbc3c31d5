// What the self-test counts: on verdicts that are made up.
#include "guard/diagnosis/selftest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "guard/engine/reference.h"

namespace attnguard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::array<std::string_view, 2> kChecks = {"visibility", "row-sum"};

CheckResult violated_check(const char* check) {
  CheckResult result;
  result.check = check;
  result.verdict = Verdict::kViolation;
  result.findings.push_back({.message = "made up"});
  return result;
}

// Finds and names every defect where it shows, and nothing else.
ProblemResult ideal(const Engine& engine, const Problem&, TrialKind trial) {
  ProblemResult result;
  result.verdict = Verdict::kPass;
  if (trial != TrialKind::kDefect) return result;
  result.verdict = Verdict::kViolation;
  result.checks = {violated_check("row-sum")};
  Diagnosis diagnosis;
  diagnosis.equally_good = {engine.name.substr(std::string("defect:").size())};
  result.diagnosis = diagnosis;
  return result;
}

SelftestResult selftest_of(const Verify& verify) {
  SelftestOptions options;
  options.random_problems = 3;
  const std::vector<Engine> engines = {reference_engine()};
  return run_selftest(verify, kChecks, engines, options);
}

const DefectTrial& trial_of(const SelftestResult& result, const char* id) {
  for (const DefectTrial& trial : result.defects)
    if (trial.defect->id == id) return trial;
  ADD_FAILURE() << id;
  return result.defects.front();
}

TEST(Selftest, PassesAGuardThatFindsAllAndAccusesNone) {
  const SelftestResult result = selftest_of(ideal);
  EXPECT_TRUE(result.ok());
  const auto defects = static_cast<std::int64_t>(result.defects.size());
  EXPECT_GT(defects, 50);
  EXPECT_EQ(result.defects.size() + result.legal.size(), all_defects().size());
  EXPECT_EQ(result.detected(), defects);
  EXPECT_EQ(result.ranked_within(1), defects);
  EXPECT_EQ(result.alarms(), 0);
  EXPECT_EQ(result.engines.front().problems, 3);
  EXPECT_EQ(result.engines.front().passed, 3);
  EXPECT_TRUE(result.indistinguishable().empty());
  EXPECT_THAT(trial_of(result, "no-mask").found_by, ElementsAre("row-sum"));
}

TEST(Selftest, CountsADefectThatIsMissedOnOneProblem) {
  int calls = 0;
  const SelftestResult result = selftest_of(
      [&](const Engine& engine, const Problem& problem, TrialKind trial) {
        ProblemResult made = ideal(engine, problem, trial);
        if (engine.name == "defect:no-mask" && trial == TrialKind::kDefect &&
            ++calls == 2)
          made = ideal(engine, problem, TrialKind::kClean);
        return made;
      });
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.detected(),
            static_cast<std::int64_t>(result.defects.size()) - 1);
  const DefectTrial& trial = trial_of(result, "no-mask");
  EXPECT_FALSE(trial.is_detected());
  EXPECT_EQ(trial.rank, 0);
  EXPECT_THAT(trial.note, HasSubstr("not found on '"));
}

TEST(Selftest, CountsTiesAgainstTheRightCause) {
  const SelftestResult result = selftest_of(
      [](const Engine& engine, const Problem& problem, TrialKind trial) {
        ProblemResult made = ideal(engine, problem, trial);
        if (made.diagnosis && engine.name == "defect:no-mask")
          made.diagnosis->equally_good = {"no-mask", "causal-off-by-one",
                                          "prefix-one-longer"};
        return made;
      });
  EXPECT_EQ(trial_of(result, "no-mask").rank, 3);
  const auto defects = static_cast<std::int64_t>(result.defects.size());
  EXPECT_EQ(result.ranked_within(1), defects - 1);
  EXPECT_EQ(result.ranked_within(2), defects - 1);
  EXPECT_EQ(result.ranked_within(3), defects);
  EXPECT_THAT(
      result.indistinguishable(),
      ElementsAre(
          std::pair<std::string, std::string>("causal-off-by-one", "no-mask"),
          std::pair<std::string, std::string>("no-mask", "prefix-one-longer")));
  EXPECT_TRUE(result.ok()) << "all are found; the name is another matter";
}

TEST(Selftest, CountsFalseAlarmsWhereverTheyAre) {
  for (const char* accused :
       {"defect:legal-merge-of-parts", "builtin:reference"}) {
    const SelftestResult result = selftest_of(
        [&](const Engine& engine, const Problem& problem, TrialKind trial) {
          return ideal(engine, problem,
                       engine.name == accused ? TrialKind::kDefect : trial);
        });
    EXPECT_FALSE(result.ok()) << accused;
    EXPECT_EQ(result.alarms(), 3) << accused;
  }
  const SelftestResult result = selftest_of(
      [&](const Engine& engine, const Problem& problem, TrialKind trial) {
        ProblemResult made = ideal(engine, problem, trial);
        if (trial != TrialKind::kDefect) made.verdict = Verdict::kEngineError;
        return made;
      });
  EXPECT_GT(result.alarms(), 100);
}

TEST(Selftest, CountsWhatIsNotJudgedAsNeitherPassNorAlarm) {
  const SelftestResult result = selftest_of(
      [&](const Engine& engine, const Problem& problem, TrialKind trial) {
        ProblemResult made = ideal(engine, problem, trial);
        if (trial != TrialKind::kDefect) made.verdict = Verdict::kInconclusive;
        return made;
      });
  EXPECT_EQ(result.engines.front().passed, 0);
  EXPECT_EQ(result.engines.front().not_judged, 3);
  EXPECT_EQ(result.alarms(), 0);
}

TEST(Selftest, OfNothingIsNoPass) { EXPECT_FALSE(SelftestResult{}.ok()); }

}  // namespace
}  // namespace attnguard
