// Drives the command in process: what it prints where, and its exit codes.
#include "ci/cli.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ci/arguments.h"
#include "guard/check/check.h"
#include "guard/report/report.h"
#include "tests/ci/run_words.h"

namespace attnguard {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

// The program is named with its path, which nothing shows.
Outcome run_by_path(const std::vector<std::string>& words,
                    const Surroundings& surroundings = {}) {
  return run_words(words, surroundings, "/usr/bin/attnguard");
}

// A tiny run of one engine, with further options.
Outcome check_tiny(const char* engine, std::vector<const char*> more = {},
                   const Surroundings& surroundings = {}) {
  std::vector<std::string> words = {"check", "--engine", engine, "--problem",
                                    kTinyProblem};
  words.insert(words.end(), more.begin(), more.end());
  return run_by_path(words, surroundings);
}

// One line "attnguard: error: ...", at most one hint, and nothing on stdout.
void expect_usage_error(const Outcome& outcome, const std::string& says) {
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err, StartsWith("attnguard: error: "));
  EXPECT_THAT(outcome.err, HasSubstr(says));
  EXPECT_LE(std::ranges::count(outcome.err, '\n'), 2);
}

// A folder of the test's own, removed with all that is in it.
class Folder {
 public:
  Folder() {
    std::string name = testing::TempDir() + "attnguard-cli-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name)) << text;
    return file(name);
  }
  std::string read(const std::string& name) const {
    std::ifstream stream(file(name));
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  std::ptrdiff_t num_files() const {
    return std::distance(std::filesystem::directory_iterator(path_), {});
  }

 private:
  std::string path_;
};

TEST(CheckCommand, ExitsZeroForACorrectEngine) {
  const Outcome outcome = check_tiny("builtin:tiled");
  EXPECT_EQ(outcome.code, kExitPass) << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("builtin:tiled"));
  EXPECT_THAT(outcome.err, IsEmpty());
}

TEST(CheckCommand, ExitsOneForSoftmaxOverTheQueryAxis) {
  const Outcome outcome = check_tiny("builtin:wrong_axis");
  EXPECT_EQ(outcome.code, kExitViolation);
  EXPECT_THAT(outcome.out, HasSubstr("do not sum to 1"));
  EXPECT_THAT(outcome.out, HasSubstr("when later tokens change"));
  EXPECT_THAT(outcome.out, HasSubstr("replay it with"));
}

TEST(CheckCommand, TheWorstOfSeveralEnginesDecides) {
  const Outcome outcome =
      check_tiny("builtin:tiled", {"--engine", "builtin:wrong_axis"});
  EXPECT_EQ(outcome.code, kExitViolation);
  EXPECT_THAT(outcome.out, HasSubstr("builtin:tiled"));
  EXPECT_THAT(outcome.out, HasSubstr("all engines"));
}

TEST(CheckCommand, NothingCheckedIsNotAPass) {
  const Folder folder;
  const std::string empty =
      folder.write("p.yaml", "version: 1\nproblems: []\n");
  const Outcome outcome =
      run_by_path({"check", "--engine", "builtin:tiled", "--policy", empty});
  EXPECT_NE(outcome.code, kExitPass);
}

TEST(CheckCommand, WritesEveryFormatToStdoutAlone) {
  for (std::string_view format : report_format_names()) {
    const Outcome outcome = check_tiny(
        "builtin:wrong_axis", {"--format", std::string(format).c_str()});
    EXPECT_EQ(outcome.code, kExitViolation) << format;
    EXPECT_THAT(outcome.out, Not(IsEmpty())) << format;
    EXPECT_THAT(outcome.err, IsEmpty()) << format;
  }
}

TEST(CheckCommand, RecordsSeedThreadsAndCommandInTheReport) {
  const Outcome outcome = check_tiny(
      "builtin:tiled",
      {"--format", "json", "--seed", "18446744073709551615", "--threads", "2",
       "--coverage", "sampled", "--check", "row-sum"});
  const auto report = nlohmann::json::parse(outcome.out, nullptr, false);
  ASSERT_TRUE(report.is_object()) << outcome.out << outcome.err;
  EXPECT_EQ(report["runs"][0]["seed"].get<std::uint64_t>(), UINT64_MAX);
  EXPECT_EQ(report["runs"][0]["threads"], 2);
  const std::string command = report["tool"]["command"];
  EXPECT_THAT(command, StartsWith("attnguard check --engine builtin:tiled"));
  EXPECT_THAT(command, HasSubstr(std::string("'") + kTinyProblem + "'"));
}

TEST(CheckCommand, DrawsNoMapWhenAskedNotTo) {
  EXPECT_THAT(check_tiny("builtin:wrong_axis").out,
              HasSubstr("which keys move"));
  EXPECT_THAT(check_tiny("builtin:wrong_axis", {"--no-map"}).out,
              Not(HasSubstr("which keys move")));
}

TEST(CheckCommand, ColorsOnlyATerminalThatWantsThem) {
  const auto colored = [](const Outcome& outcome) {
    return outcome.out.find('\x1b') != std::string::npos;
  };
  const Surroundings terminal{.out_is_terminal = true};
  const Surroundings plain{.out_is_terminal = true, .no_color = true};
  EXPECT_FALSE(colored(check_tiny("builtin:tiled")));
  EXPECT_TRUE(colored(check_tiny("builtin:tiled", {}, terminal)));
  EXPECT_FALSE(colored(check_tiny("builtin:tiled", {}, plain)));
  EXPECT_TRUE(
      colored(check_tiny("builtin:tiled", {"--color", "always"}, plain)));
  EXPECT_FALSE(
      colored(check_tiny("builtin:tiled", {"--color=never"}, terminal)));
}

TEST(CheckCommand, ShowsProgressOnlyOnATerminal) {
  const Outcome outcome =
      check_tiny("builtin:tiled", {}, {.err_is_terminal = true});
  EXPECT_THAT(outcome.err, HasSubstr("problem 1 of 1"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("problem 1 of 1")));
}

TEST(CheckCommand, WritesTheReportIntoAFile) {
  const Folder folder;
  const std::string path = folder.write("report.json", "old");
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  const Outcome outcome = check_tiny(
      "builtin:tiled", {"--format", "json", "--output", path.c_str()});
  EXPECT_EQ(outcome.code, kExitPass);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(folder.read("report.json"), HasSubstr("schema_version"));
  EXPECT_EQ(folder.num_files(), 1);  // The temporary file is gone.
  struct stat info = {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0640u);
}

TEST(CheckCommand, WritesThroughLinksAndIntoDevices) {
  const Folder folder;
  folder.write("real.txt", "old");
  const std::string link = folder.file("link.txt");
  std::filesystem::create_symlink("real.txt", link);
  EXPECT_EQ(check_tiny("builtin:tiled", {"--output", link.c_str()}).code,
            kExitPass);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_THAT(folder.read("real.txt"), HasSubstr("builtin:tiled"));
  EXPECT_EQ(check_tiny("builtin:tiled", {"--output", "/dev/null"}).code,
            kExitPass);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_THAT(check_tiny("builtin:tiled", {"--output", "-"}).out,
              HasSubstr("builtin:tiled"));
}

TEST(CheckCommand, LeavesTheOldReportWhenItCannotRun) {
  const Folder folder;
  const std::string path = folder.write("report.txt", "old");
  expect_usage_error(check_tiny("builtin:no_such", {"--output", path.c_str()}),
                     "no_such");
  EXPECT_EQ(folder.read("report.txt"), "old");
  EXPECT_EQ(folder.num_files(), 1);
}

TEST(CheckCommand, FindsAnUnwritableFileBeforeItRuns) {
  const Surroundings terminal{.err_is_terminal = true};  // Shows any progress.
  const Outcome missing = check_tiny(
      "builtin:tiled", {"--output", "/no/such/folder/r.txt"}, terminal);
  expect_usage_error(missing, "cannot write the report to '/no/such/folder");
  expect_usage_error(
      check_tiny("builtin:tiled",
                 {"--write-baseline", "/no/such/folder/b.json"}, terminal),
      "cannot write the baseline to '/no/such/folder/b.json'");
  const Folder folder;
  const std::string path = folder.file("");
  expect_usage_error(check_tiny("builtin:tiled", {"--output", path.c_str()}),
                     "Is a directory");
}

TEST(CheckCommand, ReportsAFullDisk) {
  if (!std::filesystem::exists("/dev/full"))
    GTEST_SKIP() << "skipped: /dev/full not found";
  expect_usage_error(check_tiny("builtin:tiled", {"--output", "/dev/full"}),
                     "No space left");
}

TEST(CheckCommand, ReportsAStdoutThatCannotBeWritten) {
  std::ostream closed(nullptr);
  std::ostringstream err;
  const char* words[] = {"attnguard", "list", "formats"};
  EXPECT_EQ(run_command(3, words, closed, err), kExitUsage);
  EXPECT_THAT(err.str(), HasSubstr("cannot write to standard output"));
}

struct BadFlagCase {
  std::vector<const char*> words;  // Behind a tiny check.
  const char* says;
};

void PrintTo(const BadFlagCase& bad, std::ostream* to) {
  for (const char* word : bad.words) *to << word << ' ';
}

class BadFlag : public testing::TestWithParam<BadFlagCase> {};

TEST_P(BadFlag, IsAUsageErrorThatHelps) {
  expect_usage_error(check_tiny("builtin:tiled", GetParam().words),
                     GetParam().says);
}

INSTANTIATE_TEST_SUITE_P(
    OfCheck, BadFlag,
    testing::Values(
        BadFlagCase{{"--engine"}, "option --engine needs a value"},
        BadFlagCase{{"--engine", ""}, "the value of option --engine is empty"},
        BadFlagCase{{"--engine", "tiled"}, "there is no adapter"},
        BadFlagCase{{"--engine", ":tiled"}, "the adapter's name is empty"},
        BadFlagCase{{"--engine", "builtin:"}, "the engine's name is empty"},
        BadFlagCase{{"--engine", "builtin:tiled,x"}, "option=value"},
        BadFlagCase{{"--engine", "bultin:tiled"}, "did you mean 'builtin'?"},
        BadFlagCase{{"--engine", "builtin:tild"}, "did you mean"},
        BadFlagCase{{"--engine", "builtin:tiled,no_such_option=1"},
                    "no_such_option"},
        BadFlagCase{{"--engine", "--no-map"}, "is followed by '--no-map'"},
        BadFlagCase{{"--problem"}, "option --problem needs a value"},
        BadFlagCase{{"--problem", "bach=1"}, "did you mean 'batch'?"},
        BadFlagCase{{"--problem", "batch=0"}, "batch"},
        BadFlagCase{{"--check"}, "option --check needs a value"},
        BadFlagCase{{"--check", "row-sums"}, "did you mean 'row-sum'?"},
        BadFlagCase{{"--seed"}, "option --seed needs a value"},
        BadFlagCase{{"--seed", "-1"}, "'-1' is not a whole number from 0"},
        BadFlagCase{{"--seed", "1.5"}, "is not a whole number"},
        BadFlagCase{{"--seed", "18446744073709551616"},
                    "is not a whole number"},
        BadFlagCase{{"--seed", "1", "--seed", "2"}, "--seed is given twice"},
        BadFlagCase{{"--threads", "0"}, "is not a whole number from 1"},
        BadFlagCase{{"--threads", "4097"}, "to 4096"},
        BadFlagCase{{"--coverage", "edge"}, "did you mean 'edges'?"},
        BadFlagCase{{"--format", "jason"}, "did you mean 'json'?"},
        BadFlagCase{{"--format", "pdf"}, "known: text, json, junit"},
        BadFlagCase{{"--format", "xml"}, "known: text, json, junit"},
        BadFlagCase{{"--color", "allways"}, "did you mean 'always'?"},
        BadFlagCase{{"--output"}, "option --output needs a value"},
        BadFlagCase{{"--output", "a", "--output", "b"}, "is given twice"},
        BadFlagCase{{"--no-map=7"}, "option --no-map takes no value"},
        BadFlagCase{{"--no-mapp"}, "did you mean '--no-map'?"},
        BadFlagCase{{"--sede", "1"}, "did you mean '--seed'?"},
        BadFlagCase{{"-x"}, "unknown option '-x'"},
        BadFlagCase{{"stray"}, "unexpected argument 'stray'"}));

TEST(Command, NamesWhatItKnowsForAnUnknownCommand) {
  expect_usage_error(run_by_path({}),
                     "known: check, merge, list, explain, policy");
  expect_usage_error(run_by_path({"chekc"}), "did you mean 'check'?");
  expect_usage_error(run_by_path({"--versoin"}), "did you mean '--version'?");
  expect_usage_error(run_by_path({"check"}), "no engine given");
  expect_usage_error(run_by_path({"policy"}), "known: lint, print");
  expect_usage_error(run_by_path({"policy", "lnt"}), "did you mean 'lint'?");
}

TEST(Command, KeepsControlCharactersOffTheTerminal) {
  const Outcome outcome = run_by_path({"\x1b[31mboo"});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_EQ(outcome.err.find('\x1b'), std::string::npos);
}

TEST(Command, PrintsVersionAndHelp) {
  const Outcome version = run_by_path({"--version"});
  EXPECT_EQ(version.code, kExitPass);
  EXPECT_THAT(version.out, StartsWith("attnguard "));
  for (const Outcome& help :
       {run_by_path({"--help"}), run_by_path({"check", "--help"}),
        run_by_path({"policy", "-h"})}) {
    EXPECT_EQ(help.code, kExitPass);
    EXPECT_THAT(help.out, HasSubstr("Usage: attnguard"));
    EXPECT_THAT(help.err, IsEmpty());
  }
}

TEST(ListCommand, PrintsEveryTopic) {
  const std::pair<const char*, const char*> topics[] = {
      {"engines", "builtin:wrong_axis"},
      {"checks", "row-sum"},
      {"masks", "causal_top_left"},
      {"problems", "seq_len_q="},
      {"formats", "junit"},
      {"fields", "softmax_scale"}};
  for (const auto& [topic, holds] : topics) {
    const Outcome outcome = run_by_path({"list", topic});
    EXPECT_EQ(outcome.code, kExitPass) << topic;
    EXPECT_THAT(outcome.out, HasSubstr(holds)) << topic;
    EXPECT_THAT(outcome.err, IsEmpty()) << topic;
  }
}

TEST(ListCommand, RefusesWhatItDoesNotKnow) {
  expect_usage_error(run_by_path({"list"}), "known: engines, checks");
  expect_usage_error(run_by_path({"list", "mask"}), "did you mean 'masks'?");
  expect_usage_error(run_by_path({"list", "masks", "x"}),
                     "unexpected argument 'x'");
  expect_usage_error(run_by_path({"list", "masks", "--policy", "p"}),
                     "only with 'attnguard list problems'");
}

TEST(ExplainCommand, ExplainsEveryCheck) {
  for (std::string_view id : check_ids()) {
    const Outcome outcome = run_by_path({"explain", std::string(id)});
    EXPECT_EQ(outcome.code, kExitPass);
    EXPECT_THAT(outcome.out, StartsWith(std::string(id) + ": "));
    EXPECT_THAT(outcome.out, HasSubstr("\nCost\n  "));
  }
  expect_usage_error(run_by_path({"explain"}), "explain which check?");
  expect_usage_error(run_by_path({"explain", "row-sums"}),
                     "did you mean 'row-sum'?");
  expect_usage_error(run_by_path({"explain", "check"}),
                     "unknown check or lint rule 'check'");
  expect_usage_error(run_by_path({"explain", "mask-finit"}),
                     "did you mean 'mask-finite'?");
}

TEST(PolicyCommand, LintSaysOkOrWhatIsWrong) {
  const Folder folder;
  const std::string printed = run_by_path({"policy", "print"}).out;
  const std::string good = folder.write("good.yaml", printed);
  const Outcome ok = run_by_path({"policy", "lint", good});
  EXPECT_EQ(ok.code, kExitPass) << ok.err;
  EXPECT_THAT(ok.out, HasSubstr("good.yaml: OK, "));
  const std::string bad = folder.write("bad.yaml", "vershun: 1\n");
  for (const std::string& path : {bad, folder.file("missing.yaml")}) {
    const Outcome outcome = run_by_path({"policy", "lint", path});
    EXPECT_EQ(outcome.code, kExitUsage);
    EXPECT_THAT(outcome.err, HasSubstr(path));
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_EQ(check_tiny("builtin:tiled", {"--policy", path.c_str()}).code,
              kExitUsage);
    EXPECT_EQ(run_by_path({"policy", "print", "--policy", path}).code,
              kExitUsage);
  }
  expect_usage_error(run_by_path({"policy", "lint"}), "lint which file?");
}

TEST(PolicyCommand, LintNamesAnExpiredSuppression) {
  const Folder folder;
  const std::string text =
      "version: 1\nsuppressions:\n"
      "  - {check: row-sum, reason: known, expires: 2020-01-01}\n"
      "  - {check: lse, reason: known, expires: 9999-01-01}\n";
  const std::string path = folder.write("a.yaml", text);
  const Outcome outcome = run_by_path({"policy", "lint", path});
  EXPECT_EQ(outcome.code, kExitPass);
  EXPECT_EQ(outcome.err, path +
                             ":3:5: warning: the suppression expired on "
                             "2020-01-01, and fails every run that reaches it; "
                             "give it a new date or remove it\n");
}

// A file's name never begins a line of a log that a CI host reads commands in.
TEST(PolicyCommand, LintKeepsHostileNamesInTheirLine) {
  const Folder folder;
  const std::string path =
      folder.write("a\n::error::b\x1b[31m.yaml", "version: 1\n");
  const Outcome outcome = run_by_path({"policy", "lint", path});
  EXPECT_EQ(outcome.code, kExitPass) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("a\\x0a::error::b\\x1b[31m.yaml: OK, "));
}

TEST(PolicyCommand, PrintsAPolicyThatLintsAgain) {
  const Folder folder;
  const std::string first =
      folder.write("a.yaml", run_by_path({"policy", "print"}).out);
  const Outcome printed = run_by_path({"policy", "print", "--policy", first});
  EXPECT_EQ(printed.code, kExitPass) << printed.err;
  const std::string second = folder.write("b.yaml", printed.out);
  EXPECT_EQ(run_by_path({"policy", "print", "--policy", second}).out,
            printed.out);
}

TEST(ShellLine, QuotesWhatAShellWouldTakeApart) {
  const char* words[] = {"/x/attnguard", "check", "a b", "it's", "", "k=v,w:1"};
  EXPECT_EQ(shell_line(6, words),
            "attnguard check 'a b' 'it'\\''s' '' k=v,w:1");
}

}  // namespace
}  // namespace attnguard
