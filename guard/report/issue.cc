#include "guard/report/issue.h"

#include <fmt/format.h>

#include <algorithm>

#include "guard/report/terminal.h"
#include "guard/report/totals.h"

namespace attnguard {
namespace {

// One issue per kind among the findings that were kept; all of them are of
// the same kind in most checks, whose count is then known.
void add_check(const RunResult& run, const ProblemResult& problem,
               const CheckResult& check, std::vector<Issue>& issues) {
  const std::size_t begin = issues.size();
  for (const Finding& finding : check.findings) {
    const std::string kind{finding_kind_name(finding.kind)};
    const auto same = std::find_if(
        issues.begin() + static_cast<std::ptrdiff_t>(begin), issues.end(),
        [&](const Issue& issue) { return issue.kind == kind; });
    if (same != issues.end()) {
      ++same->count;
      continue;
    }
    issues.push_back({.run = &run,
                      .problem = &problem,
                      .check = &check,
                      .first = &finding,
                      .rule = check.check,
                      .kind = kind,
                      .warning = check.warning_only});
  }
  if (issues.size() == begin)
    issues.push_back({.run = &run,
                      .problem = &problem,
                      .check = &check,
                      .rule = check.check,
                      .kind = "",
                      .warning = check.warning_only});
  if (issues.size() == begin + 1)
    issues.back().count = std::max<std::int64_t>(check.num_findings, 1);
  for (const AcceptedFindings& accepted : check.accepted)
    for (std::size_t i = begin; i < issues.size(); ++i)
      if (issues[i].kind == finding_kind_name(accepted.kind))
        issues[i].suppressed = accepted.reason;
}

void add_problem(const RunResult& run, const ProblemResult& problem,
                 std::vector<Issue>& issues) {
  for (const CheckResult& check : problem.checks)
    if (check.verdict == Verdict::kViolation)
      add_check(run, problem, check, issues);
  const auto add = [&](std::string_view rule) {
    issues.push_back({.run = &run,
                      .problem = &problem,
                      .rule = std::string(rule),
                      .kind = ""});
  };
  if (problem.verdict == Verdict::kEngineError) add(kEngineErrorRule);
  if (problem.verdict == Verdict::kInconclusive) add(kInconclusiveRule);
}

int rank(const Issue& issue) {
  if (issue.rule == kEngineErrorRule) return 0;
  if (issue.warning) return 3;
  return issue.rule == kInconclusiveRule ? 2 : 1;
}

// Why a problem has no verdict: its note, or those of its checks.
std::string reason(const ProblemResult& problem) {
  if (!problem.note.empty()) return problem.note;
  for (const CheckResult& check : problem.checks)
    if (check.verdict == Verdict::kInconclusive ||
        check.verdict == Verdict::kEngineError)
      return check.check + ": " +
             (check.note.empty() ? verdict_words(check.verdict) : check.note);
  return "no reason given";
}

// Of a run whose problems do not say why it did not pass.
std::string_view rule_of(Verdict verdict) {
  if (verdict == Verdict::kEngineError) return kEngineErrorRule;
  return verdict == Verdict::kViolation ? kExpiredRule : kInconclusiveRule;
}

}  // namespace

std::vector<Issue> issues_of(std::span<const RunResult> results) {
  std::vector<Issue> issues;
  for (const RunResult& run : results) {
    const std::size_t begin = issues.size();
    for (const ProblemResult& problem : run.problems)
      add_problem(run, problem, issues);
    const bool fails = std::any_of(
        issues.begin() + static_cast<std::ptrdiff_t>(begin), issues.end(),
        [](const Issue& i) { return !i.warning && i.suppressed.empty(); });
    if (run.verdict == Verdict::kPass || fails) continue;
    issues.push_back(
        {.run = &run, .rule = std::string(rule_of(run.verdict)), .kind = ""});
  }
  return issues;
}

std::vector<Issue> not_suppressed(std::vector<Issue> issues) {
  std::erase_if(issues,
                [](const Issue& issue) { return !issue.suppressed.empty(); });
  return issues;
}

std::vector<Issue> worst_first(std::vector<Issue> issues) {
  std::ranges::stable_sort(issues, [](const Issue& a, const Issue& b) {
    return rank(a) != rank(b) ? rank(a) < rank(b) : a.count > b.count;
  });
  return issues;
}

std::string issue_text(const Issue& issue) {
  if (issue.problem == nullptr)
    return issue.run->note.empty() ? "nothing was checked" : issue.run->note;
  if (issue.check == nullptr)
    return (issue.rule == kEngineErrorRule ? "the engine failed: "
                                           : "no evidence: ") +
           reason(*issue.problem);
  if (issue.first == nullptr) return counted(issue.count, "finding");
  return counted(issue.count, "finding") + " of kind " + issue.kind +
         (issue.count == 1 ? ": " : ", the first: ") + issue.first->message;
}

std::string issue_fingerprint(const Issue& issue) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  const auto add = [&hash](std::string_view text) {
    for (char c : text) {
      hash ^= static_cast<std::uint8_t>(c);
      hash *= 0x100000001b3;
    }
    hash ^= 0xFF;  // No text holds it: "a" + "bc" is not "ab" + "c".
    hash *= 0x100000001b3;
  };
  add(issue.rule);
  add(issue.kind);
  add(issue.run->engine);
  add(issue.problem == nullptr ? "" : issue.problem->problem_line);
  return fmt::format("{:016x}", hash);
}

}  // namespace attnguard
