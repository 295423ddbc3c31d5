// For GitHub Actions: workflow commands that annotate the policy's lines. Of a
// step GitHub shows ten errors and ten warnings, so that the worst ten are
// written and the rest is counted. Problems of one place in the policy, in
// which one check fails, are one annotation.
#include <fmt/format.h>

#include <algorithm>

#include "guard/report/failure_group.h"
#include "guard/report/issue.h"
#include "guard/report/report_table.h"
#include "guard/report/safe_text.h"
#include "guard/report/summary_text.h"
#include "guard/report/terminal.h"

namespace attnguard {
namespace {

constexpr std::size_t kMostAnnotations = 10;
constexpr std::size_t kMostMessage = 2000;  // Bytes of a message.

struct Annotation {
  const Issue* first = nullptr;
  std::int64_t problems = 0;
};

SourceLocation location_of(const Issue& issue) {
  if (issue.problem == nullptr || issue.problem->location.file == "built-in")
    return {};
  return issue.problem->location;
}

std::vector<Annotation> annotations_of(const std::vector<Issue>& issues) {
  std::vector<Annotation> made;
  for (const Issue& issue : issues) {
    const auto same = std::ranges::find_if(made, [&](const Annotation& one) {
      return one.first->run == issue.run && one.first->rule == issue.rule &&
             one.first->kind == issue.kind &&
             location_of(*one.first) == location_of(issue);
    });
    if (same == made.end())
      made.push_back({&issue, 1});
    else
      ++same->problems;
  }
  return made;
}

std::string annotation_line(const Annotation& one) {
  const Issue& issue = *one.first;
  const bool warns = issue.warning || issue.rule == kInconclusiveRule;
  const SourceLocation place = location_of(issue);
  std::string line = warns ? "::warning " : "::error ";
  if (!place.file.empty()) {
    line += "file=" + github_property(place.file) + ",";
    if (place.line > 0) line += fmt::format("line={},", place.line);
    if (place.line > 0 && place.column > 0)
      line += fmt::format("col={},", place.column);
  }
  line += "title=" + github_property("attnguard " + issue.rule);
  std::string text = issue.run->engine + ": ";
  if (one.problems > 1)
    text +=
        fmt::format("{} problems of this place; in one of them ", one.problems);
  text += issue_text(issue);
  if (issue.problem != nullptr) {
    if (issue.check != nullptr && issue.problem->diagnosis)
      text += "\nbehaves like: " + diagnosis_name(*issue.problem->diagnosis);
    if (!issue.problem->replay.empty())
      text += "\nreplay: " + issue.problem->replay;
  }
  return line + "::" + github_message(shortened(text, kMostMessage)) + "\n";
}

std::string render_github(std::span<const RunResult> results,
                          const ReportOptions&) {
  const std::vector<Issue> issues =
      worst_first(not_suppressed(issues_of(results)));
  const std::vector<Annotation> all = annotations_of(issues);
  std::string out;
  std::int64_t told = 0;
  for (std::size_t i = 0; i < std::min(all.size(), kMostAnnotations); ++i) {
    out += annotation_line(all[i]);
    told += all[i].problems;
  }
  const std::int64_t rest = std::ssize(issues) - told;
  if (rest > 0)
    out += fmt::format(
        "::notice title=attnguard::and {} at other places or of other checks; "
        "the job summary and the other report formats have them\n",
        counted(rest, "more failure"));
  // In the log alone. No engine's name can begin a command in it.
  for (const RunResult& run : results)
    out += "attnguard: " + github_message(run.engine) + ": " +
           verdict_words(run.verdict) + ", " +
           run_counts(totals_of({&run, 1})) + "\n";
  return out + "attnguard: " + verdict_words(combine_runs(results)) + "\n";
}

}  // namespace

const ReportFormat kReportGithub = {
    "github", "annotations for GitHub Actions: the worst ten, the rest counted",
    render_github};

}  // namespace attnguard
