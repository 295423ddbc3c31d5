// `attnguard selftest`, in process: the detection matrix against its golden
// file, tests/ci/golden/selftest.txt. ATTNGUARD_ACCEPT=1 rewrites it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "ci/cli.h"
#include "ci/selftest_report.h"
#include "guard/check/check.h"
#include "guard/defect/defect.h"
#include "tests/ci/run_words.h"

namespace attnguard {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using Json = nlohmann::json;

Outcome run_selftest_command(std::vector<std::string> words) {
  words.insert(words.begin(), "selftest");
  return run_words(words);
}

TEST(SelftestCommand, FindsEveryDefectNamesItAndAccusesNothingElse) {
  const Outcome outcome = run_selftest_command(
      {"--format", "json", "--problems", "40", "--seed", "77"});
  ASSERT_THAT(outcome.err, IsEmpty());
  const Json report = Json::parse(outcome.out);
  EXPECT_EQ(outcome.code, 0) << outcome.out;
  EXPECT_EQ(report["verdict"], "pass");
  EXPECT_EQ(report["random_problems"], 40);
  EXPECT_EQ(report["seed"], 77);
  EXPECT_EQ(report["checks"].size(), all_checks().size());
  const Json& totals = report["totals"];
  const double defects = totals["defects"];
  EXPECT_GT(defects, 50);
  EXPECT_EQ(totals["detected"], totals["defects"]);
  EXPECT_EQ(totals["alarms"], 0);
  EXPECT_GE(totals["right_cause_first"], 0.9 * defects);
  EXPECT_GE(totals["right_cause_in_top_three"], 0.98 * defects);

  // The matrix: a row per defect, the checks that find it, its rank. Nothing
  // in it depends on rounding.
  std::string matrix;
  for (const Json& defect : report["defects"]) {
    matrix += defect["defect"].get<std::string>() + ":";
    for (const Json& check : defect["found_by"])
      matrix += " " + check.get<std::string>();
    matrix += "; rank " + defect["rank"].dump() + "\n";
  }
  const std::string path = ATTNGUARD_TEST_DATA "/ci/golden/selftest.txt";
  if (std::getenv("ATTNGUARD_ACCEPT") != nullptr)
    std::ofstream(path, std::ios::binary) << matrix;
  std::ifstream file(path, std::ios::binary);
  const std::string accepted{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(matrix, accepted)
      << "If the new matrix is right, run again with ATTNGUARD_ACCEPT=1.";
}

// A result of two defects, one legal variant and one engine, all in order.
SelftestResult good_result() {
  SelftestResult result;
  result.checks = {"visibility", "row-sum"};
  DefectTrial one{.defect = find_defect("no-mask"),
                  .problems = 3,
                  .detected = 3,
                  .found_by = {"visibility"},
                  .rank = 1};
  DefectTrial two{.defect = find_defect("double-softmax"),
                  .problems = 1,
                  .detected = 1,
                  .found_by = {"visibility", "row-sum"},
                  .rank = 1};
  result.defects = {one, two};
  result.hides = {{.engine = "defect:no-mask", .problems = 1, .passed = 1}};
  result.legal = {{.engine = "defect:legal-x", .problems = 3, .passed = 3}};
  result.engines = {{.engine = "builtin:tiled",
                     .problems = 40,
                     .passed = 38,
                     .not_judged = 2}};
  result.seed = 77;
  result.random_problems = 40;
  return result;
}

TEST(SelftestReport, PrintsTheMatrixAndTheTotals) {
  EXPECT_EQ(selftest_text(good_result()),
            "   1  visibility\n"
            "   2  row-sum\n"
            "\n"
            "defect          1  2  rank\n"
            "no-mask         x  .     1\n"
            "double-softmax  x  x     1\n"
            "\n"
            "2 defects: 2 (100.0 %) detected, right cause first in 2 "
            "(100.0 %), in the top three in 2 (100.0 %)\n"
            "1 defect where they cannot show: 1 problem, 1 passed, 0 alarms\n"
            "1 legal variant: 3 problems, 3 passed, 0 alarms\n"
            "builtin:tiled: 40 random problems, 38 passed, 2 not judged, "
            "0 alarms\n"
            "random problems come from seed 77\n"
            "indistinguishable pairs: none\n"
            "\n"
            "pass\n");
}

TEST(SelftestReport, SaysWhatIsWrong) {
  SelftestResult result = good_result();
  result.defects[0].detected = 2;
  result.defects[0].rank = 0;
  result.defects[0].note = "not found on 'seq_len=24'";
  result.defects[1].rank = 2;
  result.defects[1].tied_with = {"no-mask"};
  result.engines[0].alarms = {
      {"builtin:tiled", "seq_len=3", Verdict::kViolation, "row-sum: too much"}};
  const std::string text = selftest_text(result);
  for (const char* line :
       {"no-mask         x  .     -\n", "no-mask: not found on 'seq_len=24'\n",
        "2 defects: 1 (50.0 %) detected, right cause first in 0 (0.0 %), in "
        "the top three in 1 (50.0 %)\n",
        "2 not judged, 1 alarm\n",
        "  builtin:tiled on 'seq_len=3'\n    violation: row-sum: too much\n",
        "indistinguishable: double-softmax and no-mask\n"})
    EXPECT_THAT(text, HasSubstr(line));
  EXPECT_TRUE(text.ends_with("\nviolation\n"));
  const Json report = Json::parse(selftest_json(result));
  EXPECT_EQ(report["verdict"], "violation");
  EXPECT_EQ(report["totals"]["alarms"], 1);
  EXPECT_TRUE(report["defects"][0]["rank"].is_null());
  EXPECT_EQ(report["correct_engines"][0]["alarms"][0]["problem"], "seq_len=3");
}

TEST(SelftestCommand, RefusesWhatItDoesNotUnderstand) {
  for (const auto& [words, says] :
       {std::pair{std::vector<std::string>{"--problems", "many"},
                  "--problems: 'many' is not a whole number from 0 to 1000000"},
        {{"--seed", "-1"}, "--seed: '-1' is not a whole number"},
        {{"--format", "junit"}, "--format: unknown 'junit'"},
        {{"--problem", "seq_len=3"}, "unknown option '--problem'"},
        {{"extra"}, "unexpected argument 'extra'"}}) {
    const Outcome outcome = run_selftest_command(words);
    EXPECT_EQ(outcome.code, kExitUsage);
    EXPECT_THAT(outcome.err, HasSubstr(says));
    EXPECT_THAT(outcome.out, IsEmpty());
  }
}

}  // namespace
}  // namespace attnguard
