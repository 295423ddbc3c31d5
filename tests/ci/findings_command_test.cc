// Living with findings, as the command does it: suppressions, baselines,
// --fail-on, the search for a policy, and the policy commands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "ci/cli.h"
#include "tests/ci/run_words.h"
#include "tests/support/temp_folder.h"
#include "tests/support/text_file.h"

namespace attnguard {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Json = nlohmann::json;

class FindingsCommand : public testing::Test {
 protected:
  Outcome run(const std::vector<std::string>& words) {
    return run_words(words, surroundings_);
  }

  Outcome check(const std::string& engine,
                const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"check",     "--engine",   engine,
                                      "--problem", kTinyProblem, "--no-map"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }

  std::string policy(const std::string& text) {
    return folder_.write("policy.yaml", "version: 1\n" + text);
  }

  TempFolder folder_;
  Surroundings surroundings_;
};

TEST_F(FindingsCommand, SuppressedFindingsAreListedAndDoNotFail) {
  const std::string file = policy(
      "suppressions:\n"
      "  - {check: \"*\", engine: \"builtin:wrong*\", reason: ticket 42}\n");
  const Outcome text = check("builtin:wrong_axis", {"--policy", file});
  EXPECT_EQ(text.code, kExitPass) << text.out;
  EXPECT_THAT(text.out, HasSubstr("suppressed\n  future-influence, leak: 10 "
                                  "findings in 1 problem\n    ticket 42 ("));
  EXPECT_THAT(text.out, HasSubstr("1 passed, 115 suppressed findings"));
  EXPECT_THAT(text.out, Not(HasSubstr("problems that did not pass")));

  const Outcome report =
      check("builtin:wrong_axis", {"--policy", file, "--format", "json"});
  const Json whole = Json::parse(report.out);
  EXPECT_EQ(whole["totals"]["violations"], 0);
  EXPECT_EQ(whole["totals"]["suppressed"], 115);
  const Json run = whole["runs"][0];
  EXPECT_EQ(run["suppressions"][0]["num_findings"], 115);
  EXPECT_EQ(run["problems"][0]["checks"][0]["findings"][0]["suppressed"],
            "ticket 42");

  const Outcome xml =
      check("builtin:wrong_axis", {"--policy", file, "--format", "junit"});
  EXPECT_THAT(xml.out, HasSubstr("<skipped>suppressed: 10 findings of leak "
                                 "(ticket 42)</skipped>"));
  EXPECT_THAT(xml.out, Not(HasSubstr("<failure")));
}

TEST_F(FindingsCommand, LintNamesASuppressionThatFitsNoProblem) {
  const std::string file = policy(
      "suppressions:\n"
      "  - {check: row-sum, problem: \"*seq_len_q=77 *\", reason: old}\n"
      "  - {check: row-sum, problem: \"*seq_len_q=1 *\", reason: used}\n");
  const Outcome lint = run({"policy", "lint", file});
  EXPECT_EQ(lint.code, kExitPass);
  EXPECT_EQ(lint.err, file +
                          ":3:5: warning: the suppression fits no problem of "
                          "this policy\n");
}

// What people copy draws no warning.
TEST_F(FindingsCommand, LintFindsNothingInTheDocumentedPolicies) {
  surroundings_.today = parse_date("2027-03-31");  // The examples' last day.
  int examples = 0;
  for (const char* page : {"/../guard/policy/policy.md", "/../README.md"}) {
    const std::string text = read_file(ATTNGUARD_TEST_DATA + std::string(page));
    const std::string fence = "\n```yaml\n";
    for (std::size_t at = text.find(fence); at != std::string::npos;
         at = text.find(fence, at + 1)) {
      const std::size_t begin = at + fence.size();
      const std::string example =
          text.substr(begin, text.find("\n```", begin) + 1 - begin);
      const Outcome lint =
          run({"policy", "lint", folder_.write("example.yaml", example)});
      EXPECT_EQ(lint.code, kExitPass) << page << "\n" << example;
      EXPECT_EQ(lint.err, "") << page << "\n" << example;
      ++examples;
    }
  }
  EXPECT_GE(examples, 4);
}

TEST_F(FindingsCommand, OtherFindingsStillFail) {
  const std::string file =
      policy("suppressions: [{check: row-sum, reason: ticket 42}]\n");
  const Outcome text = check("builtin:wrong_axis", {"--policy", file});
  EXPECT_EQ(text.code, kExitViolation);
  EXPECT_THAT(text.out, HasSubstr("10 suppressed findings"));
  EXPECT_THAT(text.out, Not(HasSubstr("--check row-sum")));
}

TEST_F(FindingsCommand, UnusedSuppressionsAreNamedOverAllEngines) {
  const std::string file = policy(
      "suppressions:\n"
      "  - {check: row-sum, reason: ticket 42}\n"
      "  - {check: finite, reason: long gone}\n"
      "  - {check: finite, engine: other, reason: not run here}\n");
  const Outcome text = check(
      "builtin:tiled", {"--engine", "builtin:wrong_axis", "--policy", file});
  EXPECT_THAT(text.out,
              HasSubstr("suppressions that suppress nothing: remove them\n  " +
                        file + ":4: finite (long gone)\n\n"));
  EXPECT_THAT(text.out, Not(HasSubstr("not run here")));
}

TEST_F(FindingsCommand, AnExpiredSuppressionFailsTheRun) {
  const std::string file = policy(
      "suppressions: [{check: row-sum, reason: ticket 42, "
      "expires: 2027-03-31}]\n");
  surroundings_.today = parse_date("2027-03-31");
  EXPECT_EQ(check("builtin:tiled", {"--policy", file}).code, kExitPass);
  surroundings_.today = parse_date("2027-04-01");
  const Outcome late = check("builtin:tiled", {"--policy", file});
  EXPECT_EQ(late.code, kExitViolation);
  EXPECT_THAT(late.out, HasSubstr("1 problem: 1 passed, 1 expired "
                                  "suppression; "));
  EXPECT_THAT(late.out, HasSubstr(file + ":2:16: the suppression of row-sum "
                                         "expired on 2027-03-31 (ticket 42)"));
  const Outcome xml =
      check("builtin:tiled", {"--policy", file, "--format", "junit"});
  EXPECT_THAT(xml.out, HasSubstr("failures=\"1\""));
  EXPECT_THAT(xml.out, HasSubstr("expired on 2027-03-31"));
}

TEST_F(FindingsCommand, ABaselineLeavesOnlyNewFindings) {
  const std::string file = folder_.file("known.json");
  const Outcome first = check("builtin:wrong_axis", {"--write-baseline", file});
  EXPECT_EQ(first.code, kExitPass);
  EXPECT_THAT(first.out, HasSubstr("violation  1 problem"));
  const Outcome again = check("builtin:wrong_axis", {"--baseline", file});
  EXPECT_EQ(again.code, kExitPass);
  EXPECT_THAT(again.out, HasSubstr("known: " + file));
  // Another engine's findings are new, and so are those of another problem.
  EXPECT_EQ(check("builtin:no_mask", {"--baseline", file}).code,
            kExitViolation);
  EXPECT_EQ(
      run({"check", "--engine", "builtin:wrong_axis", "--no-map", "--baseline",
           file, "--problem", "seq_len=6 head_dim=16 mask=causal_top_left"})
          .code,
      kExitViolation);
}

TEST_F(FindingsCommand, FindingsThatAreGoneAreSaidAndDropped) {
  const std::string file = folder_.write("known.json", R"({
    "attnguard_baseline": 1, "findings": [
    {"engine": "builtin:tiled", "check": "row-sum", "kind": "mass",
     "problem": "batch=1 num_heads=2 num_kv_heads=1 seq_len_q=5 seq_len_kv=5 head_dim_qk=16 head_dim_v=16 dtype=fp32 mask=causal_top_left"},
    {"engine": "another", "check": "row-sum", "kind": "mass",
     "problem": "batch=1"}]})");
  const Outcome text =
      check("builtin:tiled",
            {"--baseline", file, "--write-baseline", folder_.file("new.json")});
  EXPECT_EQ(text.code, kExitPass);
  EXPECT_THAT(text.out, HasSubstr("known findings that are gone: write a new "
                                  "baseline\n  row-sum, mass, on "
                                  "builtin:tiled with 'batch=1 "));
  EXPECT_THAT(folder_.read("new.json"), Not(HasSubstr("builtin:tiled")));
  EXPECT_THAT(folder_.read("new.json"), HasSubstr("another"));
}

TEST_F(FindingsCommand, ABadBaselineIsAUsageError) {
  const std::string file = folder_.write("known.json", "{}");
  const Outcome bad = check("builtin:tiled", {"--baseline", file});
  EXPECT_EQ(bad.code, kExitUsage);
  EXPECT_THAT(bad.err, HasSubstr("'attnguard_baseline' is missing"));
  EXPECT_EQ(check("builtin:tiled", {"--write-baseline", "/none/x"}).code,
            kExitUsage);
}

TEST_F(FindingsCommand, FailOnSaysWhatFails) {
  const std::string file = policy("checks: {\"*\": warning}\n");
  const auto code = [&](std::vector<std::string> more) {
    return check("builtin:wrong_axis", more).code;
  };
  EXPECT_EQ(code({"--policy", file}), kExitPass);
  EXPECT_EQ(code({"--policy", file, "--fail-on", "error"}), kExitPass);
  EXPECT_EQ(code({"--policy", file, "--fail-on", "warning"}), kExitViolation);
  EXPECT_EQ(code({"--fail-on", "never"}), kExitPass);
  const Outcome bad = check("builtin:tiled", {"--fail-on", "warnings"});
  EXPECT_EQ(bad.code, kExitUsage);
  EXPECT_THAT(bad.err, HasSubstr("did you mean 'warning'?"));
  // A run without evidence is no pass, whatever may be found.
  const Outcome nothing =
      check("builtin:tiled", {"--fail-on", "never", "--check", "empty-row"});
  EXPECT_EQ(nothing.code, kExitInconclusive) << nothing.out;
  const Json report = Json::parse(
      check("builtin:wrong_axis", {"--fail-on", "never", "--format", "json"})
          .out);
  EXPECT_EQ(report["verdict"], "violation");
  EXPECT_EQ(report["exit_code"], 0);
}

TEST_F(FindingsCommand, APolicyIsFoundUpToTheRepositorysRoot) {
  folder_.write("attnguard.yaml", "version: 1\nseed: 11\n");
  folder_.write("repo/.git/HEAD", "");
  folder_.write("repo/a/b/c.txt", "");
  surroundings_.folder = folder_.file("repo/a/b");
  // The one above the repository is not its own.
  EXPECT_THAT(check("builtin:tiled").out, HasSubstr("policy   built-in\n"));
  folder_.write("repo/attnguard.yaml", "version: 1\nseed: 12\n");
  const Outcome found = check("builtin:tiled");
  EXPECT_THAT(found.out,
              HasSubstr("policy   " + folder_.file("repo/attnguard.yaml") +
                        "  (found; --policy built-in turns it off)\n"
                        "seed     12\n"));
  EXPECT_THAT(check("builtin:tiled", {"--policy", "built-in"}).out,
              HasSubstr("policy   built-in\nseed     1\n"));
  folder_.write("repo/a/attnguard.yaml", "version: 1\nseed: 13\n");
  EXPECT_THAT(check("builtin:tiled").out, HasSubstr("seed     13\n"));
  // Without a repository only the folder itself counts.
  std::filesystem::remove_all(folder_.file("repo/.git"));
  EXPECT_THAT(check("builtin:tiled").out, HasSubstr("policy   built-in\n"));
  surroundings_.folder = folder_.file("repo");
  EXPECT_THAT(check("builtin:tiled").out, HasSubstr("seed     12\n"));
  folder_.write("repo/attnguard.yaml", "version: 1\nsede: 12\n");
  const Outcome bad = check("builtin:tiled");
  EXPECT_EQ(bad.code, kExitUsage);
  EXPECT_THAT(bad.err, HasSubstr("attnguard.yaml:2:1: error: unknown key"));
}

TEST_F(FindingsCommand, PolicyCommandsPrintSchemaDifferenceAndPlaces) {
  const std::string file = policy("coverage: full\n");
  const Outcome schema = run({"policy", "schema"});
  EXPECT_EQ(Json::parse(schema.out)["title"], "attnguard policy");
  const Outcome diff = run({"policy", "diff", "built-in", file});
  EXPECT_EQ(diff.code, 1);
  EXPECT_EQ(diff.out,
            "every engine\n"
            "  coverage                          edges -> full\n");
  EXPECT_EQ(run({"policy", "diff", file, file}).code, kExitPass);
  EXPECT_EQ(run({"policy", "diff", file}).code, kExitUsage);
  const Outcome resolved = run({"policy", "print", "--policy", file,
                                "--resolved", "--engine", "ggml:flash"});
  EXPECT_THAT(resolved.out, StartsWith("# yaml-language-server: $schema="
                                       "attnguard.schema.json\nversion: 1\n"));
  EXPECT_THAT(resolved.out, HasSubstr("# " + file + ":2\n"));
  EXPECT_THAT(resolved.out,
              HasSubstr("  unused-slots-nan: warning          # built-in:"));
  EXPECT_EQ(run({"policy", "print", "--engine", "a"}).code, kExitUsage);
}

}  // namespace
}  // namespace attnguard
