#include "guard/policy/baseline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/report/sample_results.h"
#include "tests/support/temp_folder.h"

namespace attnguard {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

RunResult failing_run() {
  RunResult run = sample::failing_run();
  for (ProblemResult& problem : run.problems)
    for (CheckResult& check : problem.checks)
      for (const Finding& finding : check.findings)
        ++check.num_by_kind[finding.kind];
  return run;
}

TEST(Baseline, RoundTripsThroughItsText) {
  const RunResult run = failing_run();
  const std::string text = baseline_text({&run, 1}, {});
  const auto known = parse_baseline(text, "b.json");
  ASSERT_TRUE(known.ok()) << known.status().message();
  ASSERT_GT(known.value().size(), 1u);
  for (const Suppression& one : known.value()) {
    EXPECT_TRUE(one.baseline);
    EXPECT_EQ(one.engine, run.engine);
    EXPECT_EQ(one.reason, "known: b.json");
  }
  // What another engine's run did not judge stays in it.
  RunResult other = run;
  other.engine = "another";
  EXPECT_EQ(baseline_text({&run, 1}, known.value()), text);
  const std::string both = baseline_text({&other, 1}, known.value());
  EXPECT_EQ(parse_baseline(both, "b").value().size(), 2 * known.value().size());
}

TEST(Baseline, IsStableUnderNumbersAndRows) {
  const RunResult run = failing_run();
  RunResult moved = run;
  for (ProblemResult& problem : moved.problems)
    for (CheckResult& check : problem.checks)
      for (Finding& finding : check.findings) {
        finding.query += 1;
        finding.observed *= 2;
        finding.message += "!";
      }
  EXPECT_EQ(baseline_text({&run, 1}, {}), baseline_text({&moved, 1}, {}));
}

TEST(Baseline, LeavesOutWhatThePolicySuppressesAndWhatIsGone) {
  RunResult run = failing_run();
  const auto known =
      parse_baseline(baseline_text({&run, 1}, {}), "b.json").value();
  for (ProblemResult& problem : run.problems)
    for (CheckResult& check : problem.checks)
      if (check.verdict == Verdict::kViolation) check.verdict = Verdict::kPass;
  EXPECT_THAT(parse_baseline(baseline_text({&run, 1}, known), "b").value(),
              IsEmpty());
  run = failing_run();
  for (ProblemResult& problem : run.problems)
    for (CheckResult& check : problem.checks)
      for (const auto& [kind, count] : check.num_by_kind)
        check.accepted.push_back({kind, count, "policy", {"p", 1, 1}, false});
  EXPECT_THAT(parse_baseline(baseline_text({&run, 1}, {}), "b").value(),
              IsEmpty());
}

TEST(Baseline, NamesAreMeantLiterally) {
  RunResult run = failing_run();
  run.engine = "plugin:./lib*.so";
  const auto known = parse_baseline(baseline_text({&run, 1}, {}), "b").value();
  ASSERT_FALSE(known.empty());
  EXPECT_TRUE(known[0].fits_engine("plugin:./lib*.so"));
  EXPECT_FALSE(known[0].fits_engine("plugin:./libmine.so"));
  // Bytes that are no text still give a file that can be read.
  run.engine = "\xff\"\n\\";
  EXPECT_TRUE(parse_baseline(baseline_text({&run, 1}, {}), "b").ok());
}

TEST(Baseline, HostileTextsEndInAMessage) {
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("null"),
        std::string("{\"attnguard_baseline\": 2, \"findings\": []}"),
        std::string("{\"attnguard_baseline\": \"1\", \"findings\": []}"),
        std::string("{\"attnguard_baseline\": 1}"),
        std::string("{\"attnguard_baseline\": 1, \"findings\": {}}"),
        std::string("{\"attnguard_baseline\": 1, \"findings\": [1]}"),
        std::string("{\"attnguard_baseline\": 1, \"findings\": [{}]}"),
        std::string("{\"attnguard_baseline\": 1, \"findings\": [{\"engine\": "
                    "\"a\", \"check\": \"b\", \"kind\": \"c\", \"problem\": "
                    "\"d\"}]}"),
        std::string("\x00\xff\xfe", 3), std::string(100000, '['),
        std::string(100000, '{')}) {
    const auto known = parse_baseline(text, "b.json");
    ASSERT_FALSE(known.ok()) << text.substr(0, 80);
    EXPECT_THAT(known.status().message(), HasSubstr("b.json: "));
    EXPECT_THAT(known.status().message(), HasSubstr("--write-baseline"));
  }
}

TEST(Baseline, FilesThatCannotBeReadAreErrors) {
  const TempFolder folder;
  for (const std::string& path :
       {folder.file("none.json"), folder.path(), std::string("/dev/zero")}) {
    const auto known = load_baseline(path);
    ASSERT_FALSE(known.ok());
    EXPECT_THAT(known.status().message(), HasSubstr(path));
  }
}

}  // namespace
}  // namespace attnguard
