// One group of failures in the HTML report.
#include <fmt/format.h>

#include <algorithm>

#include "guard/base/text.h"
#include "guard/report/html_parts.h"
#include "guard/report/safe_text.h"
#include "guard/report/terminal.h"
#include "guard/report/totals.h"

namespace attnguard {
namespace {

constexpr std::size_t kMostFindings = 20;   // Rows of a table.
constexpr std::size_t kMostListItems = 50;  // Lines of a list.

using Index = std::int64_t Finding::*;

struct IndexColumn {
  const char* title;
  Index member;
};
constexpr IndexColumn kIndices[] = {{"batch", &Finding::batch},
                                    {"head", &Finding::head},
                                    {"query", &Finding::query},
                                    {"key", &Finding::key},
                                    {"channel", &Finding::channel}};

std::string number_cell(double value) {
  return fmt::format("<td class=\"number\">{}</td>",
                     std::isfinite(value) ? fmt::format("{:.6g}", value)
                                          : format_double(value));
}

std::string finding_table(const CheckResult& check) {
  const std::size_t shown = std::min(check.findings.size(), kMostFindings);
  if (shown == 0) return {};
  std::string head = "<th scope=\"col\">kind</th>", rows;
  std::vector<Index> known;
  for (const IndexColumn& column : kIndices) {
    const bool any = std::ranges::any_of(check.findings, [&](const Finding& f) {
      return f.*column.member >= 0;
    });
    if (!any) continue;
    known.push_back(column.member);
    head +=
        fmt::format("<th scope=\"col\" class=\"number\">{}</th>", column.title);
  }
  for (const char* title : {"observed", "expected", "bound"})
    head += fmt::format("<th scope=\"col\" class=\"number\">{}</th>", title);
  head += "<th scope=\"col\">probe</th><th scope=\"col\">in words</th>";
  for (std::size_t i = 0; i < shown; ++i) {
    const Finding& finding = check.findings[i];
    rows += fmt::format("<tr><th scope=\"row\">{}</th>",
                        finding_kind_name(finding.kind));
    for (Index member : known)
      rows +=
          finding.*member < 0
              ? "<td class=\"number zero\">\xE2\x80\x93</td>"
              : fmt::format("<td class=\"number\">{}</td>", finding.*member);
    rows += number_cell(finding.observed) + number_cell(finding.expected) +
            number_cell(finding.bound) + "<td>" + html_name(finding.probe) +
            "</td><td class=\"words\">" + html_name(finding.message) +
            "</td></tr>";
  }
  return html_table(
      fmt::format("{}: the first {} of {}", shortened(check.check, 200), shown,
                  counted(check.num_findings, "finding")),
      head, rows);
}

std::string findings(const ProblemResult& problem) {
  std::string out;
  for (const CheckResult& check : problem.checks) {
    if (check.verdict != Verdict::kViolation || check.suppressed()) continue;
    out += html_details(fmt::format("{}: {}", shortened(check.check, 200),
                                    counted(check.num_findings, "finding")),
                        finding_table(check));
  }
  return out;
}

std::string html_reasons(const ProblemResult& problem) {
  std::string out;
  if (!problem.note.empty()) out += "<p>" + html_name(problem.note) + "</p>";
  for (const CheckResult& check : problem.checks)
    if (check.verdict == Verdict::kInconclusive)
      out += "<p>" + html_name(check.check) + ": " +
             html_name(check.note.empty() ? verdict_words(check.verdict)
                                          : check.note) +
             "</p>";
  return out;
}

// What the engine behaves like: the best explanation's first line is the
// group's title, the rest stands here.
std::string cause(const ProblemResult& problem) {
  if (!problem.diagnosis) return {};
  std::string lines;
  for (const std::string& line : diagnosis_lines(*problem.diagnosis)) {
    const bool below = line.starts_with(' ');
    lines += fmt::format("<li{}>{}</li>", below ? " class=\"below\"" : "",
                         html_name(trim(line)));
  }
  return "<ul class=\"cause\">" + lines + "</ul>\n";
}

// What the engine behaves like, or the checks that fail.
std::string heading(const FailureGroup& group) {
  const auto& diagnosis = group.shown->diagnosis;
  if (!diagnosis || diagnosis->explanations.empty() ||
      !diagnosis->explanations.front().reproduces_all)
    return group.title();
  const Explanation& best = diagnosis->explanations.front();
  return best.summary.empty() ? diagnosis_name(*diagnosis) : best.summary;
}

std::string problem_list(const FailureGroup& group) {
  std::string items;
  const std::size_t shown = std::min(group.problems.size(), kMostListItems);
  for (std::size_t i = 0; i < shown; ++i) {
    const ProblemResult& problem = *group.problems[i];
    const std::string place = place_name(problem.location);
    items += "<li><code>" + html_name(problem.problem_line) + "</code>" +
             (place.empty()
                  ? ""
                  : " <span class=\"soft\">" + html_name(place) + "</span>") +
             "</li>";
  }
  if (group.problems.size() > shown)
    items += fmt::format("<li>and {} more</li>", group.problems.size() - shown);
  return html_details(
      counted(std::ssize(group.problems), "problem") + " of this group",
      "<ul class=\"lines\">" + items + "</ul>");
}

}  // namespace

std::string html_group(const FailureGroup& group, const std::string& id) {
  const ProblemResult& shown = *group.shown;
  const bool warns = group.verdict == Verdict::kPass;
  std::string out = fmt::format(
      "<article class=\"group {0}\" id=\"{1}\" aria-labelledby=\"{1}-name\">"
      "<h4 id=\"{1}-name\">{2}{3}</h4><p class=\"soft\">{4}: {5}</p><p "
      "class=\"soft\">Shown is <code>{6}</code></p>\n",
      warns ? "warning" : verdict_css(group.verdict), id,
      warns ? warning_badge() : verdict_badge(group.verdict),
      html_name(heading(group)), counted(std::ssize(group.problems), "problem"),
      html_name(group.title()), html_name(shown.problem_line));
  out += html_reasons(shown) + cause(shown) +
         html_influence_map(shown, id + "-map");
  const std::string whole = html_whole_matrix(shown, id + "-whole");
  if (!whole.empty())
    out += html_details("Where the findings lie in the whole matrix", whole,
                        !shown.map);
  out += html_row_mass(shown, id + "-mass") + findings(shown) +
         problem_list(group);
  if (!shown.replay.empty())
    out += "<h5>Replay it with</h5><pre><code>" + html_name(shown.replay) +
           "</code></pre>\n";
  return out + "</article>\n";
}

}  // namespace attnguard
