#include "guard/report/failure_group.h"

#include <algorithm>
#include <tuple>

#include "guard/report/terminal.h"
#include "guard/report/totals.h"

namespace attnguard {
namespace {

std::vector<std::string> title_checks(const ProblemResult& problem) {
  const Verdict wanted = problem.verdict == Verdict::kInconclusive
                             ? Verdict::kInconclusive
                             : Verdict::kViolation;
  std::vector<std::string> ids;
  for (const CheckResult& check : problem.checks)
    if (check.verdict == wanted && !check.suppressed())
      ids.push_back(check.check);
  return ids;
}

int rank(Verdict verdict) {
  switch (verdict) {
    case Verdict::kViolation:
      return 0;
    case Verdict::kEngineError:
      return 1;
    case Verdict::kInconclusive:
      return 2;
    default:
      return 3;
  }
}

std::size_t cells_of(const ProblemResult& problem) {
  std::size_t cells = 0;
  for (const std::string& row : problem.map->cells) cells += row.size();
  return cells;
}

const ProblemResult* most_telling(
    const std::vector<const ProblemResult*>& problems) {
  const ProblemResult* best = nullptr;
  for (const ProblemResult* problem : problems)
    if (problem->map && cells_of(*problem) > 0 &&
        (best == nullptr || cells_of(*problem) < cells_of(*best)))
      best = problem;
  if (best != nullptr) return best;
  for (const ProblemResult* problem : problems)
    if (problem->diagnosis) return problem;
  return problems.front();
}

}  // namespace

bool is_listed(const ProblemResult& problem) {
  return problem.verdict == Verdict::kViolation ||
         problem.verdict == Verdict::kInconclusive ||
         problem.verdict == Verdict::kEngineError || has_warning(problem);
}

std::string FailureGroup::title() const {
  std::string out;
  for (const std::string& id : checks) out += (out.empty() ? "" : ", ") + id;
  return out.empty() ? verdict_words(verdict) : out;
}

std::vector<FailureGroup> failure_groups(const RunResult& run) {
  std::vector<FailureGroup> groups;
  for (const ProblemResult& problem : run.problems) {
    if (!is_listed(problem)) continue;
    std::vector<std::string> checks = title_checks(problem);
    auto group = std::ranges::find_if(groups, [&](const FailureGroup& g) {
      return g.verdict == problem.verdict && g.checks == checks;
    });
    if (group == groups.end()) {
      groups.push_back({.verdict = problem.verdict,
                        .checks = std::move(checks),
                        .problems = {}});
      group = groups.end() - 1;
    }
    group->problems.push_back(&problem);
  }
  for (FailureGroup& group : groups) group.shown = most_telling(group.problems);
  std::ranges::stable_sort(
      groups, [](const FailureGroup& a, const FailureGroup& b) {
        return std::tuple(rank(a.verdict), -std::ssize(a.problems)) <
               std::tuple(rank(b.verdict), -std::ssize(b.problems));
      });
  return groups;
}

std::string place_name(const SourceLocation& location) {
  if (location.file.empty()) return {};
  std::string out = location.file;
  if (location.line > 0) out += ":" + std::to_string(location.line);
  if (location.line > 0 && location.column > 0)
    out += ":" + std::to_string(location.column);
  return out;
}

}  // namespace attnguard
