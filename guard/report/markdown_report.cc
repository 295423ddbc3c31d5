// For people at a code host: GitHub's job summary, a comment on a change. The
// verdict, a table of checks for each engine, and the largest groups of
// failures with map, diagnosis and replay.
#include <fmt/format.h>

#include <algorithm>

#include "guard/report/check_counts.h"
#include "guard/report/failure_group.h"
#include "guard/report/influence_map_text.h"
#include "guard/report/report_table.h"
#include "guard/report/safe_text.h"
#include "guard/report/summary_text.h"
#include "guard/report/terminal.h"

namespace attnguard {
namespace {

constexpr std::size_t kMostDetails = 8;      // Of one engine.
constexpr std::size_t kMostEngines = 20;     // With details.
constexpr std::size_t kMostMarkdown = 1000;  // Bytes of a name or line.

std::string text_of(std::string_view text) {
  return markdown_text(shortened(text, kMostMarkdown));
}

std::string code_of(std::string_view text) {
  return markdown_code(shortened(text, kMostMarkdown));
}

// Lines that stay as they are, whatever they hold.
std::string code_block(std::string_view text) {
  std::string plain = terminal_text(text);
  std::string fence = "```";
  while (plain.find(fence) != std::string::npos) fence += '`';
  if (!plain.ends_with('\n')) plain += '\n';
  return fence + "text\n" + plain + fence + "\n\n";
}

std::string markdown_engines(std::span<const RunResult> results) {
  std::string out =
      "| engine | verdict | problems | findings | warnings | engine time |\n"
      "|---|---|---|---:|---:|---:|\n";
  for (const RunResult& run : results) {
    const Totals totals = totals_of({&run, 1});
    out += fmt::format("| {} | {} | {} | {} | {} | {} |\n", code_of(run.engine),
                       verdict_words(run.verdict), problem_counts(totals),
                       totals.violations, totals.warnings,
                       duration(totals.engine_seconds));
  }
  return out + "\n";
}

std::string check_table(const RunResult& run) {
  const CheckCounts counts = count_checks(run);
  if (counts.rows.empty()) return {};
  std::string head = "| check |", line = "|---|";
  for (Verdict verdict : counts.verdicts) {
    head += " " + verdict_words(verdict) + " |";
    line += "---:|";
  }
  if (counts.suppressed > 0) {
    head += " suppressed |";
    line += "---:|";
  }
  std::string out = head + "\n" + line + "\n";
  for (const CheckCounts::Row& row : counts.rows) {
    out += "| " + code_of(row.check) + " |";
    for (Verdict verdict : counts.verdicts)
      out +=
          row.of(verdict) == 0 ? " - |" : fmt::format(" {} |", row.of(verdict));
    if (counts.suppressed > 0)
      out +=
          row.suppressed == 0 ? " - |" : fmt::format(" {} |", row.suppressed);
    out += "\n";
  }
  return out + "\n";
}

std::string group_text(const FailureGroup& group) {
  const ProblemResult& shown = *group.shown;
  std::string out = fmt::format("**{}**: {} in {}\n\n", text_of(group.title()),
                                group.verdict == Verdict::kPass
                                    ? "warning"
                                    : verdict_words(group.verdict),
                                counted(std::ssize(group.problems), "problem"));
  out += "- for instance " + code_of(shown.problem_line);
  if (const std::string place = place_name(shown.location); !place.empty())
    out += ", asked for at " + code_of(place);
  out += "\n";
  if (!shown.note.empty()) out += "- " + text_of(shown.note) + "\n";
  for (const CheckResult& check : shown.checks) {
    if (check.verdict != Verdict::kViolation || check.suppressed()) continue;
    out += fmt::format("- {}: {}", code_of(check.check),
                       counted(check.num_findings, "finding"));
    if (!check.findings.empty())
      out += ", the first: " + text_of(check.findings.front().message);
    out += "\n";
  }
  if (shown.diagnosis)
    out +=
        "- behaves like: " + text_of(diagnosis_name(*shown.diagnosis)) + "\n";
  out += "\n";
  if (shown.map)
    out += code_block("batch " + std::to_string(shown.map->batch) + ", head " +
                      std::to_string(shown.map->head) + " of " +
                      shown.map->problem + "\n\n" +
                      draw_influence_map(*shown.map, Painter(false)));
  if (!shown.replay.empty())
    out += "Replay it with\n\n" + code_block(shown.replay);
  return out;
}

std::string run_text(const RunResult& run) {
  std::string out = "### " + code_of(run.engine) + "\n\n";
  out += "Policy " + code_of(run.policy) +
         fmt::format(", seed {}, {}\n\n", run.seed,
                     counted(run.threads, "thread"));
  if (!run.note.empty()) out += text_of(run.note) + "\n\n";
  out += check_table(run);
  const std::vector<FailureGroup> groups = failure_groups(run);
  for (std::size_t i = 0; i < std::min(groups.size(), kMostDetails); ++i)
    out += group_text(groups[i]);
  if (groups.size() > kMostDetails)
    out += fmt::format(
        "and {} with other failing checks\n\n",
        counted(std::ssize(groups) - static_cast<std::ptrdiff_t>(kMostDetails),
                "more group"));
  return out;
}

std::string render_markdown(std::span<const RunResult> results,
                            const ReportOptions& options) {
  std::string out =
      "## attnguard: " + verdict_words(combine_runs(results)) + "\n\n";
  if (!results.empty()) out += markdown_engines(results);
  for (std::size_t i = 0; i < std::min(results.size(), kMostEngines); ++i)
    out += run_text(results[i]);
  if (results.size() > kMostEngines)
    out += fmt::format(
        "and {} without details\n\n",
        counted(std::ssize(results) - static_cast<std::ptrdiff_t>(kMostEngines),
                "more engine"));
  if (!options.command_line.empty()) out += code_block(options.command_line);
  return out;
}

}  // namespace

const ReportFormat kReportMarkdown = {
    "markdown", "for job summaries and comments at a code host",
    render_markdown};

}  // namespace attnguard
