// Every fault of memory and history is found by the check that should see it,
// and the same engine without the fault passes.
#include "tests/faults/fault_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>

#include "guard/check/check.h"
#include "guard/pipeline.h"
#include "tests/support/engines.h"
#include "tests/support/text_file.h"

namespace attnguard {
namespace {

using testing::IsSupersetOf;

std::vector<std::string> without_empty(
    std::span<const std::string_view> texts) {
  std::vector<std::string> kept;
  for (std::string_view text : texts)
    if (!text.empty()) kept.emplace_back(text);
  return kept;
}

// The results of one engine on the fault's problems, in order.
std::vector<ProblemResult> verify_in_order(const Fault& fault, bool faulty) {
  Engine engine = fault.make(faulty);
  engine.name = "test:" + std::string(fault.id);
  RunOptions options;
  options.draw_maps = false;
  std::vector<ProblemResult> results;
  for (const std::string& line : without_empty(fault.shows_on))
    results.push_back(verify_problem(engine, problem_of(line),
                                     default_policy().resolve(engine.name),
                                     options));
  return results;
}

std::vector<std::string> violated_checks(const ProblemResult& result) {
  std::vector<std::string> ids;
  for (const CheckResult& check : result.checks)
    if (check.verdict == Verdict::kViolation) ids.push_back(check.check);
  return ids;
}

TEST(Faults, AreNamedAfterTheirFiles) {
  std::set<std::string> listed = {"fault_table.cc", "fault_tools.cc",
                                  "fault_table_test.cc"};
  for (const Fault* fault : all_faults())
    EXPECT_TRUE(listed.insert(source_file_of(fault->id)).second) << fault->id;
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(ATTNGUARD_TEST_DATA) / "faults"))
    if (entry.path().extension() == ".cc")
      files.insert(entry.path().filename().string());
  EXPECT_EQ(listed, files);
}

TEST(Faults, SayWhatTheyAreWhereTheyWereReportedAndWhoMustSeeThem) {
  const std::regex report("[A-Za-z0-9-]+/[A-Za-z0-9._-]+#[0-9]+");
  DefectClass last = all_defect_classes().front();
  for (const Fault* fault : all_faults()) {
    EXPECT_FALSE(fault->summary.empty()) << fault->id;
    EXPECT_EQ(fault->summary.find('\n'), std::string::npos) << fault->id;
    for (const std::string& text : without_empty(fault->reports))
      EXPECT_TRUE(std::regex_match(text, report)) << text;
    EXPECT_FALSE(without_empty(fault->shows_on).empty()) << fault->id;
    EXPECT_FALSE(without_empty(fault->seen_by).empty()) << fault->id;
    for (const std::string& check : without_empty(fault->seen_by))
      EXPECT_NE(find_check(check), nullptr) << fault->id << " " << check;
    EXPECT_LE(last, fault->cls) << fault->id;
    last = fault->cls;
  }
}

TEST(Faults, AreFoundByTheChecksThatShouldSeeThem) {
  for (const Fault* fault : all_faults()) {
    const std::vector<ProblemResult> results = verify_in_order(*fault, true);
    for (std::size_t n = 0; n + 1 < results.size(); ++n)
      EXPECT_EQ(results[n].verdict, Verdict::kPass)
          << fault->id << ": " << findings_text(results[n]);
    EXPECT_EQ(results.back().verdict, Verdict::kViolation) << fault->id;
    EXPECT_THAT(violated_checks(results.back()),
                IsSupersetOf(without_empty(fault->seen_by)))
        << fault->id << ": " << findings_text(results.back());
  }
}

TEST(Faults, LeaveNothingToFindWhenRepaired) {
  for (const Fault* fault : all_faults())
    for (const ProblemResult& result : verify_in_order(*fault, false))
      EXPECT_EQ(result.verdict, Verdict::kPass)
          << fault->id << ": " << findings_text(result);
}

}  // namespace
}  // namespace attnguard
