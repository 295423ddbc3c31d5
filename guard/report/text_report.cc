// For people at a terminal: what was run, which problems did not pass, what
// is wrong with them by check, the influence map of the smallest failing
// case, how to replay it, and the verdict as the last line.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "guard/report/check_counts.h"
#include "guard/report/failure_group.h"
#include "guard/report/influence_map_text.h"
#include "guard/report/report_table.h"
#include "guard/report/safe_text.h"
#include "guard/report/summary_text.h"
#include "guard/report/terminal.h"
#include "guard/report/text_findings.h"
#include "guard/report/text_suppressions.h"
#include "guard/report/totals.h"

namespace attnguard {
namespace {

constexpr std::size_t kMostLines = 20;  // Lines in the problem list.

std::string heading(const RunResult& run, const Painter& paint) {
  const auto line = [&](std::string_view name, const std::string& value) {
    return paint(Ink::kDim, pad_right(name, 9)) + value + "\n";
  };
  return line("engine", paint(Ink::kBold, terminal_line(run.engine))) +
         line("policy", terminal_line(run.policy) +
                            (run.policy_found
                                 ? "  (found; --policy built-in turns it off)"
                                 : "")) +
         line("seed", std::to_string(run.seed)) +
         line("threads", std::to_string(run.threads)) + "\n";
}

// How often each check ended with each verdict; columns of zeros are left out.
std::string check_table(const RunResult& run, const Painter& paint) {
  const CheckCounts counts = count_checks(run);
  if (counts.rows.empty()) return {};
  std::vector<Column> columns = {
      {.title = "check", .right = false, .cells = {}}};
  for (const CheckCounts::Row& row : counts.rows)
    columns[0].cells.push_back({terminal_text(row.check)});
  for (Verdict verdict : counts.verdicts) {
    Column column{.title = verdict_words(verdict), .cells = {}};
    for (const CheckCounts::Row& row : counts.rows) {
      const std::int64_t count = row.of(verdict);
      column.cells.push_back({count == 0 ? "-" : std::to_string(count),
                              count == 0 ? Ink::kDim : verdict_ink(verdict)});
    }
    columns.push_back(std::move(column));
  }
  if (counts.suppressed > 0) {
    Column column{.title = "suppressed", .cells = {}};
    for (const CheckCounts::Row& row : counts.rows) {
      const std::int64_t count = row.suppressed;
      column.cells.push_back({count == 0 ? "-" : std::to_string(count),
                              count == 0 ? Ink::kDim : Ink::kPlain});
    }
    columns.push_back(std::move(column));
  }
  std::string out;
  for (const std::string& line : table_lines(columns, 0, paint))
    out += line + "\n";
  return out + "\n";
}

// Why a problem has its verdict, a line for each reason that the findings do
// not tell.
std::string text_reasons(const ProblemResult& problem) {
  std::string out;
  if (!problem.note.empty()) out += terminal_text(problem.note) + "\n";
  for (const CheckResult& check : problem.checks) {
    if (check.verdict != Verdict::kInconclusive &&
        check.verdict != Verdict::kEngineError)
      continue;
    out += terminal_text(check.check) + ": " +
           (check.note.empty() ? verdict_words(check.verdict)
                               : terminal_text(check.note)) +
           "\n";
  }
  return out;
}

std::string problem_place(const SourceLocation& location) {
  if (location.file.empty()) return {};
  return fmt::format("  ({}:{})", terminal_text(location.file), location.line);
}

std::string problem_list(const RunResult& run, const Painter& paint) {
  std::string out;
  std::size_t listed = 0;
  const std::size_t number_width =
      std::to_string(run.problems.size()).size() + 2;
  for (std::size_t p = 0; p < run.problems.size(); ++p) {
    const ProblemResult& problem = run.problems[p];
    if (!is_listed(problem) || ++listed > kMostLines) continue;
    const bool warns = problem.verdict == Verdict::kPass;
    out += pad_left(std::to_string(p + 1), number_width) + "  " +
           paint(warns ? Ink::kYellow : verdict_ink(problem.verdict),
                 pad_right(warns ? "warning" : verdict_words(problem.verdict),
                           12)) +
           "  " + terminal_text(problem.problem_line) +
           paint(Ink::kDim, problem_place(problem.location)) + "\n";
    out += paint(Ink::kDim, indented(text_reasons(problem), number_width + 16));
  }
  if (listed == 0) return {};
  if (listed > kMostLines)
    out += fmt::format("  and {} more\n", listed - kMostLines);
  return paint(Ink::kBold, "problems that did not pass cleanly") + "\n" + out +
         "\n";
}

std::string unsupported_list(const RunResult& run, const Painter& paint) {
  std::map<std::string, std::int64_t> by_reason;
  std::int64_t total = 0;
  for (const ProblemResult& problem : run.problems) {
    if (problem.verdict != Verdict::kUnsupported) continue;
    ++total;
    ++by_reason[problem.note.empty() ? "no reason given" : problem.note];
  }
  if (total == 0) return {};
  std::string out = paint(Ink::kBold, counted(total, "problem")) +
                    " that the engine does not support\n";
  for (const auto& [reason, count] : by_reason)
    out += indented(fmt::format("{}  {}", count, terminal_text(reason)), 2);
  return out + "\n";
}

// The failing problem whose map is smallest; without any map, the first that
// can be replayed.
const ProblemResult* smallest_failing(const RunResult& run) {
  const auto map_size = [](const ProblemResult& problem) {
    return problem.map->cells.size() * problem.map->cells.front().size();
  };
  const ProblemResult* best = nullptr;
  const ProblemResult* first = nullptr;
  for (const ProblemResult& problem : run.problems) {
    if (!is_listed(problem)) continue;
    if (first == nullptr && !problem.replay.empty()) first = &problem;
    if (!problem.map || problem.map->cells.empty()) continue;
    if (best == nullptr || map_size(problem) < map_size(*best)) best = &problem;
  }
  return best != nullptr ? best : first;
}

// What the engine behaves like in the problem shown, or in the first that was
// diagnosed, and where other problems look like something else.
std::string diagnoses(const RunResult& run, const ProblemResult& shown,
                      const Painter& paint) {
  const ProblemResult* main = shown.diagnosis ? &shown : nullptr;
  for (const ProblemResult& problem : run.problems)
    if (main == nullptr && problem.diagnosis) main = &problem;
  if (main == nullptr) return {};
  std::string out = paint(Ink::kBold, "diagnosis") + "\n";
  for (const std::string& line : diagnosis_lines(*main->diagnosis))
    out += indented(terminal_text(line), 2);
  std::vector<std::string> said = {diagnosis_name(*main->diagnosis)};
  for (std::size_t p = 0; p < run.problems.size(); ++p) {
    if (!run.problems[p].diagnosis) continue;
    std::string name = diagnosis_name(*run.problems[p].diagnosis);
    if (std::ranges::find(said, name) != said.end()) continue;
    out += indented(
        fmt::format("problem {} behaves like: {}", p + 1, terminal_text(name)),
        2);
    said.push_back(std::move(name));
  }
  return out + "\n";
}

std::string smallest_case(const RunResult& run, const Painter& paint) {
  const ProblemResult* problem = smallest_failing(run);
  if (problem == nullptr) return {};
  std::string out;
  if (problem->map) {
    const InfluenceMap& map = *problem->map;
    const std::string& line =
        map.problem.empty() ? problem->smallest_failing : map.problem;
    out +=
        paint(Ink::kBold, "smallest failing case") + "\n  " +
        terminal_text(line) + "\n" +
        fmt::format("  which keys move which rows, in batch {}, head {}:\n\n",
                    map.batch, map.head) +
        draw_influence_map(map, paint) + "\n";
  } else if (!problem->smallest_failing.empty()) {
    out += paint(Ink::kBold, "smallest failing case") + "\n  " +
           terminal_text(problem->smallest_failing) + "\n\n";
  }
  out += diagnoses(run, *problem, paint);
  if (!problem->replay.empty())
    out += paint(Ink::kBold, "replay it with") + "\n  " +
           terminal_text(problem->replay) + "\n\n";
  return out;
}

std::string summary(std::string_view name, Verdict verdict,
                    const Totals& totals, const Painter& paint) {
  return fmt::format(
      "{}  {}{}; {}, {} in the engine, {} in the guard "
      "({:.1f} %)\n",
      paint(verdict_ink(verdict),
            pad_right(verdict_words(verdict), name.empty() ? 0 : 12)),
      name.empty() ? "" : terminal_text(name) + ", ", run_counts(totals),
      counted(totals.engine_calls, "engine call"),
      duration(totals.engine_seconds), duration(totals.guard_seconds),
      100 * totals.guard_share());
}

std::string run_text(const RunResult& run, const Painter& paint) {
  std::string out = heading(run, paint);
  if (!run.note.empty()) out += terminal_text(run.note) + "\n\n";
  return out + check_table(run, paint) + problem_list(run, paint) +
         unsupported_list(run, paint) + draw_findings(run, paint) +
         draw_suppressed(run, paint) + smallest_case(run, paint);
}

std::string render_text(std::span<const RunResult> results,
                        const ReportOptions& options) {
  const Painter paint(options.color);
  std::string out =
      paint(Ink::kBold, options.version.empty()
                            ? "attnguard"
                            : "attnguard " + terminal_text(options.version)) +
      "\n";
  if (!options.command_line.empty())
    out += paint(Ink::kDim, terminal_line(options.command_line)) + "\n";
  out += "\n";
  for (const RunResult& run : results) out += run_text(run, paint);
  out += draw_unused_suppressions(results, paint);
  if (results.size() > 1)
    for (const RunResult& run : results)
      out += summary(run.engine, run.verdict, totals_of({&run, 1}), paint);
  out += summary(results.size() > 1 ? "all engines" : "", combine_runs(results),
                 totals_of(results), paint);
  return out;
}

}  // namespace

const ReportFormat kReportText = {
    "text", "for people at a terminal, with the influence map", render_text};

}  // namespace attnguard
