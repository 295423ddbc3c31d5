// Every known defect is found where it shows, and every legal variant is left
// alone.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "adapters/defect/defects.h"
#include "guard/check/check.h"
#include "guard/defect/defect.h"
#include "guard/pipeline.h"
#include "tests/engine/test_tensors.h"
#include "tests/support/text_file.h"

namespace attnguard {
namespace {

std::vector<std::string> problem_lines_of(const Defect& defect) {
  std::vector<std::string> lines;
  for (std::string_view line : defect.shows_on)
    if (!line.empty()) lines.emplace_back(line);
  return lines;
}

ProblemResult verify_on(const Engine& engine, const std::string& line,
                        std::vector<std::string> checks = {}) {
  RunOptions options;
  options.checks = std::move(checks);
  options.draw_maps = false;
  return verify_problem(engine, problem_of(line), Settings{}, options);
}

std::string summary_of(const ProblemResult& result) {
  std::string text = result.problem_line + " " + result.note;
  for (const CheckResult& check : result.checks) {
    text += "\n  " + check.check + ": " +
            std::string(verdict_name(check.verdict)) + " " + check.note;
    if (!check.findings.empty()) text += check.findings.front().message;
  }
  return text;
}

TEST(Defects, AreNamedAfterTheirFiles) {
  const std::filesystem::path room =
      std::filesystem::path(ATTNGUARD_TEST_DATA) / "../guard/defect";
  std::set<std::string> listed = {"defect_table.cc", "edit.cc", "storage.cc"};
  for (const Defect* defect : all_defects()) {
    const std::string id(defect->id);
    EXPECT_TRUE(std::regex_match(id, std::regex("[a-z0-9]+(-[a-z0-9]+)*")))
        << id;
    EXPECT_TRUE(listed.insert(source_file_of(id)).second)
        << id << " is listed twice";
    EXPECT_EQ(find_defect(id), defect);
  }
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(room))
    if (entry.path().extension() == ".cc")
      files.insert(entry.path().filename().string());
  EXPECT_EQ(listed, files);
  EXPECT_EQ(find_defect("no-such-defect"), nullptr);
}

TEST(Defects, HaveAClassAndAreListedInTheClassesOrder) {
  std::set<std::string_view> names;
  for (DefectClass cls : all_defect_classes()) {
    EXPECT_FALSE(defect_class_name(cls).empty());
    EXPECT_TRUE(names.insert(defect_class_name(cls)).second);
  }
  DefectClass last = all_defect_classes().front();
  for (const Defect* defect : all_defects()) {
    EXPECT_TRUE(names.count(defect_class_name(defect->cls))) << defect->id;
    EXPECT_LE(last, defect->cls) << defect->id;
    last = defect->cls;
    EXPECT_EQ(defect->legal(), defect->id.substr(0, 6) == "legal-");
  }
}

// What needs memory or history of its own is made of engines, in tests/faults.
TEST(Defects, ShowEveryClassThatTheReferenceCanShow) {
  std::map<DefectClass, int> counts;
  for (const Defect* defect : all_defects()) ++counts[defect->cls];
  for (DefectClass cls : all_defect_classes())
    if (cls != DefectClass::kStaleOrUninit &&
        cls != DefectClass::kNondeterminismRace) {
      EXPECT_GE(counts[cls], 1) << defect_class_name(cls);
    }
}

TEST(Defects, SayWhatTheyAreInOneLineAndWhereItWasReported) {
  const std::regex report("[A-Za-z0-9-]+/[A-Za-z0-9._-]+#[0-9]+");
  for (const Defect* defect : all_defects()) {
    EXPECT_FALSE(defect->summary.empty()) << defect->id;
    EXPECT_EQ(defect->summary.find('\n'), std::string::npos) << defect->id;
    std::set<std::string_view> named;
    for (std::string_view text : defect->reports) {
      if (text.empty()) continue;
      EXPECT_TRUE(std::regex_match(std::string(text), report)) << text;
      EXPECT_TRUE(named.insert(text).second) << defect->id << ": " << text;
    }
    EXPECT_FALSE(problem_lines_of(*defect).empty()) << defect->id;
  }
}

TEST(Defects, AreFoundWhereTheyShow) {
  for (const Defect* defect : all_defects())
    for (const std::string& line : problem_lines_of(*defect)) {
      const ProblemResult result = verify_on(defect_engine(*defect), line);
      EXPECT_EQ(result.verdict,
                defect->legal() ? Verdict::kPass : Verdict::kViolation)
          << defect->id << ": " << summary_of(result);
    }
}

// Tensors that a test lays out itself: padded, and no mask among them. On the
// others the checks compare with the reference.
bool has_plain_tensors(const Problem& problem) {
  return !problem.packed && problem.block_size == 0 &&
         problem.mask_form == MaskForm::kImplied;
}

TEST(Defects, AreTheReferenceWhereTheyCannotShow) {
  for (const Defect* defect : all_defects()) {
    if (defect->hides_on.empty()) continue;
    const std::string line(defect->hides_on);
    if (has_plain_tensors(problem_of(line))) {
      TestTensors tensors(problem_of(line));
      EXPECT_EQ(outside_bound(tensors, defect_engine(*defect)), "");
    }
    const ProblemResult result =
        verify_on(defect_engine(*defect), line, own_output_checks());
    EXPECT_EQ(result.verdict, Verdict::kPass)
        << defect->id << ": " << summary_of(result);
  }
}

TEST(Defects, TakeAwkwardProblems) {
  for (const char* line :
       {"seq_len_q=3 seq_len_kv=0 head_dim=4 mask=causal_bottom_right",
        "seq_len_q=0 seq_len_kv=5 head_dim=4",
        "seq_len_q=9 seq_len_kv=2 head_dim=5 mask=causal_bottom_right",
        "batch=5 num_heads=6 num_kv_heads=3 seq_len_q=4,0,1,7,2 "
        "seq_len_kv=6,3,0,7,33 head_dim_qk=6 head_dim_v=3 dtype=fp64 "
        "layout=sbhd mask=causal_top_left",
        "batch=2 seq_len_q=1,20 seq_len_kv=18,3 head_dim_qk=3 head_dim_v=6 "
        "dtype=bf16 mask=prefix_lm(prefix=2)+sliding_window(left=1,right=1)",
        "num_heads=3 seq_len_q=5 seq_len_kv=0 head_dim=4 softcap=2 "
        "alibi_max_bias=8 sinks=0,1,-1 empty_row=mean",
        "num_heads=2 num_kv_heads=1 seq_len_q=9 seq_len_kv=7 head_dim_qk=6 "
        "head_dim_v=4 value_in_key=true sinks=1 empty_row=nan "
        "mask=left_padding(pad=2)+causal_bottom_right"})
    for (const Defect* defect : all_defects()) {
      TestTensors tensors(problem_of(line));
      tensors.run(defect_engine(*defect));
    }
}

TEST(Defects, TakeAwkwardPlacesOfTokens) {
  for (const char* line :
       {"batch=4 num_heads=2 num_kv_heads=1 seq_len_q=2,0,3,1 "
        "seq_len_kv=5,0,18,1 head_dim=4 block_size=4 packed=true "
        "packed_padding=1 mask=causal_bottom_right",
        "batch=3 seq_len=0,6,1 head_dim_qk=6 head_dim_v=4 value_in_key=true "
        "packed=true layout=bshd",
        "batch=2 seq_len_q=2 seq_len_kv=3,5 head_dim_qk=6 head_dim_v=4 "
        "value_in_key=true block_size=1 layout=bshd "
        "mask=sliding_window(left=1,right=0) mask_form=inverted"})
    for (const Defect* defect : all_defects()) {
      const ProblemResult result = verify_on(defect_engine(*defect), line);
      EXPECT_FALSE(result.checks.empty());
      EXPECT_NE(result.verdict, Verdict::kEngineError)
          << defect->id << ": " << summary_of(result);
    }
}

TEST(DefectAdapter, ListsEveryDefectUnderTheNameItOpens) {
  const std::vector<EngineListing> listings = kDefectAdapter.list();
  EXPECT_EQ(listings.size(), all_defects().size());
  for (const EngineListing& listing : listings) {
    ASSERT_EQ(listing.name.substr(0, 7), "defect:");
    const Result<Engine> engine =
        kDefectAdapter.open({listing.name, listing.name.substr(7), {}});
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    EXPECT_EQ(engine.value().name, listing.name);
    EXPECT_TRUE(engine.value().run);
  }
}

TEST(DefectAdapter, NamesTheNearestDefectAndRefusesOptions) {
  const Result<Engine> unknown =
      kDefectAdapter.open({"defect:no-masc", "no-masc", {}});
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.status().message().find("did you mean 'no-mask'?"),
            std::string::npos);
  const Result<Engine> options =
      kDefectAdapter.open({"defect:no-mask,x=1", "no-mask", {{"x", "1"}}});
  ASSERT_FALSE(options.ok());
  EXPECT_NE(options.status().message().find("'x'"), std::string::npos);
}

}  // namespace
}  // namespace attnguard
