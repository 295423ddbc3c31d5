// For people in a browser: one file, without scripts and without anything from
// elsewhere. It can be kept, mailed and opened in ten years. The markup is
// well-formed XML too, which tests use.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "guard/report/check_counts.h"
#include "guard/report/html_parts.h"
#include "guard/report/report_table.h"
#include "guard/report/safe_text.h"
#include "guard/report/summary_text.h"
#include "guard/report/terminal.h"

namespace attnguard {
namespace {

constexpr std::size_t kMostGroups = 12;  // Of one engine, with pictures.

std::string fact(std::string_view name, const std::string& value) {
  return fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", name, value);
}

std::string facts(const RunResult& run) {
  const Totals totals = totals_of({&run, 1});
  return "<dl class=\"facts\">" + fact("policy", html_name(run.policy)) +
         fact("seed", std::to_string(run.seed)) +
         fact("threads", std::to_string(run.threads)) +
         fact("engine calls", std::to_string(totals.engine_calls)) +
         fact("in the engine", duration(totals.engine_seconds)) +
         fact("in the guard",
              duration(totals.guard_seconds) +
                  fmt::format(" ({:.0f} %)", 100 * totals.guard_share())) +
         "</dl>\n";
}

std::string count_cell(std::int64_t count, Verdict verdict) {
  if (count == 0)
    return "<td class=\"number zero\" aria-label=\"0\">\xE2\x80\x93</td>";
  return fmt::format(
      "<td class=\"number\"><span class=\"tone {}\">{}</span>"
      "</td>",
      verdict_css(verdict), count);
}

// The share of the problems with a violation that the check sees.
std::string share_cell(std::int64_t seen, std::int64_t failing) {
  if (failing == 0) return "<td></td>";
  const double share =
      100 * static_cast<double>(seen) / static_cast<double>(failing);
  return fmt::format(
      "<td><span class=\"bar violation\" role=\"img\" aria-label=\"sees {} of "
      "{} failing problems\"><i style=\"width:{:.1f}%\"></i></span></td>",
      seen, failing, std::min(share, 100.0));
}

std::string check_name(const std::string& id, const ReportOptions& options) {
  const auto rule = std::ranges::find_if(
      options.rules, [&](const RuleText& one) { return one.id == id; });
  std::string out = "<th scope=\"row\">" + html_name(id);
  if (rule != options.rules.end())
    out += "<span class=\"about\">" + html_text(rule->summary) + "</span>";
  return out + "</th>";
}

std::string check_table(const RunResult& run, const ReportOptions& options) {
  const CheckCounts counts = count_checks(run);
  if (counts.rows.empty()) return {};
  const std::int64_t failing =
      std::ranges::count_if(run.problems, [](const ProblemResult& problem) {
        return std::ranges::any_of(problem.checks, [](const CheckResult& c) {
          return c.verdict == Verdict::kViolation && !c.suppressed();
        });
      });
  std::string head = "<th scope=\"col\">check</th>", rows;
  for (Verdict verdict : counts.verdicts)
    head += "<th scope=\"col\" class=\"number\">" + verdict_words(verdict) +
            "</th>";
  if (counts.suppressed > 0)
    head += "<th scope=\"col\" class=\"number\">suppressed</th>";
  head += "<th scope=\"col\" class=\"number\">findings</th>";
  if (failing > 0) head += "<th scope=\"col\">of the failing problems</th>";
  for (const CheckCounts::Row& row : counts.rows) {
    rows += "<tr>" + check_name(row.check, options);
    for (Verdict verdict : counts.verdicts)
      rows += count_cell(row.of(verdict), verdict);
    if (counts.suppressed > 0)
      rows += count_cell(row.suppressed, Verdict::kNotApplicable);
    rows += count_cell(row.findings, Verdict::kNotApplicable);
    if (failing > 0) rows += share_cell(row.of(Verdict::kViolation), failing);
    rows += "</tr>";
  }
  return "<h3>Checks</h3>" +
         html_table("How often each check ended how, in problems", head, rows);
}

std::string unsupported(const RunResult& run) {
  std::map<std::string, std::int64_t> reasons;
  std::int64_t total = 0;
  for (const ProblemResult& problem : run.problems) {
    if (problem.verdict != Verdict::kUnsupported) continue;
    ++total;
    ++reasons[problem.note.empty() ? "no reason given" : problem.note];
  }
  if (total == 0) return {};
  std::string items;
  for (const auto& [reason, count] : reasons)
    items += fmt::format("<li>{}: {}</li>", count, html_name(reason));
  return html_details(
      counted(total, "problem") + " that the engine does not support",
      "<ul class=\"lines\">" + items + "</ul>");
}

// What the policy and the baseline accept, with the reason that was given.
std::string suppressions(const RunResult& run) {
  std::string rows;
  for (const SuppressionUse& use : run.suppressions) {
    const std::string state = use.expired ? "expired"
                              : use.num_findings > 0
                                  ? counted(use.num_findings, "finding")
                              : use.reached ? "nothing left to accept"
                                            : "not reached";
    rows += "<tr><th scope=\"row\">" + html_name(use.check) + "</th><td>" +
            html_name(use.problem) + "</td><td>" + html_name(state) +
            "</td><td class=\"words\">" + html_name(use.reason) + "</td><td>" +
            html_name(use.expires) + "</td></tr>";
  }
  if (rows.empty()) return {};
  return html_details(
      counted(std::ssize(run.suppressions), "suppression"),
      html_table("What is accepted, and why",
                 "<th scope=\"col\">check</th><th scope=\"col\">problem</th>"
                 "<th scope=\"col\">accepts</th><th scope=\"col\">reason</th>"
                 "<th scope=\"col\">until</th>",
                 rows));
}

std::string failures(const RunResult& run, const std::string& id) {
  const std::vector<FailureGroup> groups = failure_groups(run);
  if (groups.empty()) return {};
  std::string out = "<h3>What failed</h3>";
  if (groups.size() > 1)
    out += fmt::format("<p class=\"soft\">{}, by the checks that fail.</p>",
                       counted(std::ssize(groups), "group"));
  for (std::size_t i = 0; i < std::min(groups.size(), kMostGroups); ++i)
    out += html_group(groups[i], fmt::format("{}-g{}", id, i + 1));
  std::string rest;
  for (std::size_t i = kMostGroups; i < groups.size(); ++i)
    rest += fmt::format("<li>{} in {}, for instance <code>{}</code></li>",
                        html_name(groups[i].title()),
                        counted(std::ssize(groups[i].problems), "problem"),
                        html_name(groups[i].shown->problem_line));
  if (!rest.empty())
    out += html_details(
        counted(std::ssize(groups) - static_cast<std::ptrdiff_t>(kMostGroups),
                "smaller group"),
        "<ul class=\"lines\">" + rest + "</ul>");
  return out;
}

std::string run_section(const RunResult& run, const std::string& id,
                        const ReportOptions& options) {
  return fmt::format(
             "<section id=\"{0}\" aria-labelledby=\"{0}-name\"><h2 "
             "id=\"{0}-name\">{1} {2}</h2>\n",
             id, html_name(run.engine), verdict_badge(run.verdict)) +
         "<p>" + run_counts(totals_of({&run, 1})) + "</p>" +
         (run.note.empty() ? "" : "<p>" + html_name(run.note) + "</p>") +
         facts(run) + failures(run, id) + check_table(run, options) +
         suppressions(run) + unsupported(run) + "</section>\n";
}

std::string html_engines(std::span<const RunResult> results) {
  std::string rows;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const RunResult& run = results[i];
    const Totals totals = totals_of({&run, 1});
    rows += fmt::format(
        "<tr><th scope=\"row\"><a href=\"#run-{}\">{}</a></th><td>{}</td>"
        "<td class=\"problems\">{}</td><td class=\"number\">{}</td>"
        "<td class=\"number\">{}</td>"
        "<td class=\"number\">{}</td></tr>",
        i + 1, html_name(run.engine), verdict_badge(run.verdict),
        problem_counts(totals), totals.violations, totals.warnings,
        duration(totals.engine_seconds));
  }
  return html_table("Engines",
                    "<th scope=\"col\">engine</th><th scope=\"col\">verdict"
                    "</th><th scope=\"col\">problems</th><th scope=\"col\" "
                    "class=\"number\">findings</th><th scope=\"col\" "
                    "class=\"number\">warnings</th><th scope=\"col\" "
                    "class=\"number\">engine time</th>",
                    rows);
}

// What each check looks at, for those who read the report alone.
std::string explanations(const ReportOptions& options) {
  if (options.rules.empty()) return {};
  std::string inside;
  for (const RuleText& rule : options.rules)
    inside +=
        html_details(std::string(rule.id) + ": " + std::string(rule.summary),
                     "<pre>" + html_text(rule.explanation) + "</pre>");
  return "<section aria-labelledby=\"explained\"><h2 id=\"explained\">What the "
         "checks look at</h2>" +
         inside + "</section>\n";
}

std::string footer(const ReportOptions& options) {
  std::string out = "<footer>";
  if (!options.command_line.empty())
    out += "<p>Made by</p><pre><code>" + html_name(options.command_line) +
           "</code></pre>";
  if (!options.timestamp.empty())
    out += "<p>" + html_name(options.timestamp) + " UTC" +
           (options.hostname.empty() ? ""
                                     : ", on " + html_name(options.hostname)) +
           "</p>";
  return out +
         "<p>A pass says that the checks above found nothing on these "
         "problems. "
         "Without evidence the verdict is inconclusive, never a pass.</p>"
         "</footer>\n";
}

std::string render_html(std::span<const RunResult> results,
                        const ReportOptions& options) {
  const Verdict verdict = combine_runs(results);
  const std::string counts = run_counts(totals_of(results));
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\"/>\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
      "'none'; style-src 'unsafe-inline'\"/>\n"
      "<title>attnguard: {}, {}</title>\n<style>\n",
      verdict_words(verdict), counts);
  out += html_style() + "</style></head>\n<body>\n";
  out += fmt::format(
      "<a class=\"skip\" href=\"#content\">to the results</a>\n"
      "<header class=\"{}\"><p class=\"tool\">attnguard {}</p><h1>{}</h1>"
      "<p>{}</p></header>\n<main id=\"content\">\n",
      verdict_css(verdict), html_name(options.version), verdict_badge(verdict),
      counts);
  if (results.size() > 1) out += html_engines(results);
  for (std::size_t i = 0; i < results.size(); ++i)
    out += run_section(results[i], fmt::format("run-{}", i + 1), options);
  return out + explanations(options) + "</main>\n" + footer(options) +
         "</body></html>\n";
}

}  // namespace

const ReportFormat kReportHtml = {
    "html", "for people in a browser: one file, with the influence map",
    render_html};

}  // namespace attnguard
