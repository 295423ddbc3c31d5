// For code hosts: SARIF 2.1.0, as GitHub's code scanning takes it. One run,
// whatever the number of engines: a code host keeps the runs of one tool apart
// by a category that the upload gives, and refuses files of more than 20.
//
// A result stands at the line of the policy that asks for its problem.
// Problems of the built-in policy and of --problem have no file: theirs is an
// artifact that the report holds, with one problem in each line.
//
// GitHub takes 25,000 results and 10 MB, compressed, and shows the 5,000 worst.
// What goes beyond is left out, the least first, and a notification counts it.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "guard/report/explain_text.h"
#include "guard/report/issue.h"
#include "guard/report/report_table.h"
#include "guard/report/safe_text.h"
#include "guard/report/summary_text.h"
#include "guard/report/terminal.h"

namespace attnguard {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostResults = 25000;
constexpr std::size_t kMostBytes = 8'000'000;  // Of the results, uncompressed.
constexpr std::size_t kMostSarifText = 4000;   // Bytes of one text.
constexpr std::string_view kProblemsFile = "attnguard-problems.txt";

constexpr RuleText kOwnRules[] = {
    {kEngineErrorRule, "the engine failed, hung or returned an error",
     "engine-error\n\nWhat it is\n"
     "  The engine crashed, threw, returned an error or took longer than the\n"
     "  time limit on a problem that it says it supports. Nothing is known of\n"
     "  its attention there.\n"},
    {kInconclusiveRule, "a problem was run and gave no evidence",
     "inconclusive\n\nWhat it is\n"
     "  A positive control did not fire, or nothing was checked. That is not "
     "a\n"
     "  pass: the run ends with exit code 4. The message says what was\n"
     "  missing.\n"},
    {kExpiredRule, "a suppression of the policy is past its date",
     "expired-suppression\n\nWhat it is\n"
     "  The policy accepted findings until a day that is over. Mend what they\n"
     "  found, or give the suppression a new date.\n"},
};

// Square brackets are links in a message.
std::string message_text(std::string_view text) {
  const std::string plain = terminal_text(shortened(text, kMostSarifText));
  if (plain.find("](") == std::string::npos) return plain;
  std::string out;
  for (char c : plain) {
    if (c == '[' || c == ']' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

// "row-sum" as "RowSum".
std::string pascal_case(std::string_view id) {
  std::string out;
  bool upper = true;
  for (char c : id) {
    if (c == '-' || c == '_' || c == ' ') {
      upper = true;
      continue;
    }
    out += upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    upper = false;
  }
  return out;
}

Json rule_json(const RuleText& rule) {
  const bool warns = rule.id == kInconclusiveRule;
  const std::string lead = explain_lead(rule.explanation);
  const std::string page{rule.explanation};
  return {{"id", rule.id},
          {"name", pascal_case(rule.id)},
          {"shortDescription", {{"text", rule.summary}}},
          {"fullDescription",
           {{"text", lead.empty() ? std::string(rule.summary) : lead}}},
          {"help",
           {{"text", page.empty() ? std::string(rule.summary) : page},
            {"markdown", page.empty() ? markdown_text(rule.summary)
                                      : explain_markdown(page)}}},
          {"defaultConfiguration", {{"level", warns ? "warning" : "error"}}},
          {"properties",
           {{"tags", Json::array({"attention", "correctness"})},
            {"precision", "very-high"},
            {"problem.severity", warns ? "warning" : "error"}}}};
}

// The rules of the report, found by their id.
class Rules {
 public:
  explicit Rules(std::span<const RuleText> known) {
    for (const RuleText& rule : known) add(rule);
    for (const RuleText& rule : kOwnRules) add(rule);
  }

  std::size_t index_of(const std::string& id) {
    const auto found = index_.find(id);
    if (found != index_.end()) return found->second;
    add({id, "a property of attention that a check looks at", ""});
    return index_.at(id);
  }

  Json take() { return std::move(rules_); }

 private:
  void add(const RuleText& rule) {
    index_.emplace(std::string(rule.id), rules_.size());
    rules_.push_back(rule_json(rule));
  }

  Json rules_ = Json::array();
  std::map<std::string, std::size_t> index_;
};

bool has_file(const ProblemResult& problem) {
  return !problem.location.file.empty() && problem.location.file != "built-in";
}

// The lines of the artifact that stands for a policy's file.
class ProblemLines {
 public:
  std::size_t line_of(const std::string& problem) {
    const auto [at, is_new] = line_.emplace(problem, line_.size() + 1);
    if (is_new) text_ += message_text(first_line(problem)) + "\n";
    return at->second;
  }
  bool empty() const { return line_.empty(); }
  const std::string& text() const { return text_; }

 private:
  static std::string_view first_line(std::string_view text) {
    return text.substr(0, text.find('\n'));
  }

  std::map<std::string, std::size_t> line_;
  std::string text_;
};

Json location_json(const Issue& issue, ProblemLines& lines) {
  Json artifact, region;
  if (issue.problem != nullptr && has_file(*issue.problem)) {
    const SourceLocation& place = issue.problem->location;
    artifact = {{"uri", path_uri(place.file)}};
    if (!place.file.starts_with('/')) artifact["uriBaseId"] = "%SRCROOT%";
    region = {{"startLine", std::max(place.line, 1)}};
    if (place.column > 0) region["startColumn"] = place.column;
  } else {
    artifact = {{"uri", kProblemsFile}, {"uriBaseId", "%SRCROOT%"}};
    region = {{"startLine", lines.line_of(issue.problem == nullptr
                                              ? issue.run->policy
                                              : issue.problem->problem_line)},
              {"startColumn", 1}};
  }
  return {{"physicalLocation",
           {{"artifactLocation", std::move(artifact)},
            {"region", std::move(region)}}}};
}

std::string result_message(const Issue& issue) {
  std::string text = issue.run->engine + ": " + issue_text(issue);
  if (issue.problem == nullptr) return text;
  text += "\nProblem: " + issue.problem->problem_line;
  if (issue.check != nullptr && issue.problem->diagnosis)
    text += "\nBehaves like: " + diagnosis_name(*issue.problem->diagnosis);
  if (!issue.problem->replay.empty())
    text += "\nReplay: " + issue.problem->replay;
  return text;
}

Json result_json(const Issue& issue, Rules& rules, ProblemLines& lines) {
  const bool warns = issue.warning || issue.rule == kInconclusiveRule;
  const std::string fingerprint = issue_fingerprint(issue);
  Json properties = {{"engine", message_text(issue.run->engine)},
                     {"count", issue.count}};
  if (!issue.kind.empty()) properties["kind"] = issue.kind;
  if (issue.problem != nullptr) {
    properties["problem"] = message_text(issue.problem->problem_line);
    properties["replay"] = message_text(issue.problem->replay);
  }
  Json suppressions = Json::array();
  if (!issue.suppressed.empty())
    suppressions.push_back({{"kind", "external"},
                            {"justification", message_text(issue.suppressed)}});
  // GitHub reads primaryLocationLineHash alone; the other one says what it is.
  return {{"ruleId", issue.rule},
          {"ruleIndex", rules.index_of(issue.rule)},
          {"level", warns ? "warning" : "error"},
          {"message", {{"text", message_text(result_message(issue))}}},
          {"locations", Json::array({location_json(issue, lines)})},
          {"partialFingerprints",
           {{"primaryLocationLineHash", fingerprint + ":1"},
            {"attnguardIssue/v1", fingerprint}}},
          {"suppressions", std::move(suppressions)},
          {"properties", std::move(properties)}};
}

// Fills `results` with as many as fit; returns how many did not.
std::size_t add_results(const std::vector<Issue>& issues, Rules& rules,
                        ProblemLines& lines, Json& results) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < issues.size(); ++i) {
    Json result = result_json(issues[i], rules, lines);
    bytes += result.dump(-1, ' ', false, Json::error_handler_t::replace).size();
    if (i == kMostResults || bytes > kMostBytes) return issues.size() - i;
    results.push_back(std::move(result));
  }
  return 0;
}

Json invocation_json(std::span<const RunResult> results,
                     const ReportOptions& options, std::size_t left_out) {
  const Verdict verdict = combine_runs(results);
  Json notes = Json::array();
  const auto note = [&](const char* level, std::string_view text) {
    notes.push_back(
        {{"level", level}, {"message", {{"text", message_text(text)}}}});
  };
  if (left_out > 0)
    note("warning", counted(static_cast<std::int64_t>(left_out), "result") +
                        " left out: more do not fit into what code hosts take");
  for (const RunResult& run : results)
    note("note", run.engine + ": " + verdict_words(run.verdict) + ", " +
                     run_counts(totals_of({&run, 1})) +
                     (run.note.empty() ? "" : "; " + run.note));
  Json made = {{"executionSuccessful", verdict != Verdict::kEngineError},
               {"exitCode", exit_code(verdict)},
               {"toolExecutionNotifications", std::move(notes)}};
  if (!options.command_line.empty())
    made["commandLine"] = message_text(options.command_line);
  return made;
}

Json problems_artifact(const ProblemLines& lines) {
  return {{"location", {{"uri", kProblemsFile}, {"uriBaseId", "%SRCROOT%"}}},
          {"description",
           {{"text", "Problems without a policy file, one in each line."}}},
          {"contents", {{"text", lines.text()}}}};
}

std::string render_sarif(std::span<const RunResult> results,
                         const ReportOptions& options) {
  Rules rules(options.rules);
  ProblemLines lines;
  Json list = Json::array();
  const std::size_t left_out =
      add_results(worst_first(issues_of(results)), rules, lines, list);
  Json driver = {{"name", "attnguard"}};
  if (!options.version.empty()) driver["semanticVersion"] = options.version;
  driver["rules"] = rules.take();
  Json run = {{"tool", {{"driver", std::move(driver)}}},
              {"invocations",
               Json::array({invocation_json(results, options, left_out)})},
              {"columnKind", "utf16CodeUnits"}};
  if (!lines.empty())
    run["artifacts"] = Json::array({problems_artifact(lines)});
  run["properties"] = {{"resultsLeftOut", left_out}};
  run["results"] = std::move(list);
  const Json report = {
      {"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
      {"version", "2.1.0"},
      {"runs", Json::array({std::move(run)})}};
  return report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

const ReportFormat kReportSarif = {
    "sarif", "SARIF 2.1.0, for code scanning: a result per problem and check",
    render_sarif};

}  // namespace attnguard
