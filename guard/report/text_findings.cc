#include "guard/report/text_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "guard/base/text.h"
#include "guard/report/safe_text.h"

namespace attnguard {
namespace {

constexpr std::size_t kMostRows = 5;   // Findings shown per check.
constexpr std::size_t kMostNames = 4;  // Row numbers in a sentence.

struct FindingEntry {
  std::size_t number = 0;  // of the problem, from 1
  const ProblemResult* problem = nullptr;
  const Finding* finding = nullptr;
};

struct FindingGroup {
  std::string check;
  bool warning_only = true;
  std::int64_t total = 0;
  std::int64_t problems = 0;
  std::vector<FindingEntry> entries;  // Those kept; total counts all.
};

std::vector<FindingGroup> group_by_check(const RunResult& run) {
  std::vector<FindingGroup> groups;
  for (std::size_t p = 0; p < run.problems.size(); ++p) {
    for (const CheckResult& check : run.problems[p].checks) {
      if (check.verdict != Verdict::kViolation || check.suppressed()) continue;
      auto group = std::ranges::find(groups, check.check, &FindingGroup::check);
      if (group == groups.end()) {
        groups.push_back({.check = check.check, .entries = {}});
        group = groups.end() - 1;
      }
      group->warning_only &= check.warning_only;
      group->total += check.num_findings - check.num_suppressed;
      ++group->problems;
      for (const Finding& finding : check.findings)
        if (finding.suppressed.empty())
          group->entries.push_back({p + 1, &run.problems[p], &finding});
    }
  }
  return groups;
}

// True for a leak of a key behind the row's own token under a causal mask.
bool is_from_the_future(const FindingEntry& entry) {
  const Finding& finding = *entry.finding;
  const Problem& problem = entry.problem->problem;
  if (finding.kind != FindingKind::kLeak || finding.query < 0 ||
      finding.key < 0 || finding.batch >= problem.batch)
    return false;
  if (problem.mask.has("causal_top_left")) return finding.key > finding.query;
  const RowPlace row =
      problem.row(std::max<std::int64_t>(finding.batch, 0), finding.query);
  return problem.mask.has("causal_bottom_right") &&
         finding.key > row.bottom_right();
}

// "Row 0 moves", "Rows 0, 1 and others move".
std::string future_sentence(const std::set<std::int64_t>& rows) {
  std::string names;
  std::size_t named = 0;
  for (std::int64_t row : rows) {
    if (named == kMostNames) break;
    const bool last = ++named == rows.size();
    names += (named == 1 ? "" : last ? " and " : ", ") + std::to_string(row);
  }
  if (rows.size() > named) names += " and others";
  return fmt::format("{} {} {} when later tokens change.",
                     rows.size() == 1 ? "Row" : "Rows", names,
                     rows.size() == 1 ? "moves" : "move");
}

std::string kind_sentence(FindingKind kind, bool mass_is_one) {
  switch (kind) {
    case FindingKind::kLeak:
      return "Rows depend on keys that they must not see.";
    case FindingKind::kMiss:
      return "Rows do not depend on keys that they must see.";
    case FindingKind::kMass:
      return mass_is_one
                 ? "The weights of these rows do not sum to 1."
                 : "The weights of these rows do not have the sum they should.";
    case FindingKind::kValue:
      return "Outputs differ from the expected value by more than rounding "
             "explains.";
    case FindingKind::kNonFinite:
      return "NaN or infinity where finite inputs give a finite output.";
    case FindingKind::kUnwritten:
      return "The engine never wrote these output elements.";
    case FindingKind::kOverwrite:
      return "The engine wrote memory that is not the output's.";
    case FindingKind::kOutOfBounds:
      return "The engine touched memory outside of the tensors.";
    case FindingKind::kNotRepeatable:
      break;
  }
  return "The same call gave different bits.";
}

// What the group says, in the order of its findings, each sentence once.
std::vector<std::string> sentences(const FindingGroup& group) {
  std::set<std::int64_t> future_rows;
  std::vector<std::string> out;
  const bool mass_is_one =
      std::ranges::all_of(group.entries, [](const FindingEntry& entry) {
        return entry.finding->kind != FindingKind::kMass ||
               entry.finding->expected == 1;
      });
  for (const FindingEntry& entry : group.entries) {
    if (is_from_the_future(entry)) {
      future_rows.insert(entry.finding->query);
      continue;
    }
    std::string sentence = kind_sentence(entry.finding->kind, mass_is_one);
    if (std::ranges::find(out, sentence) == out.end())
      out.push_back(std::move(sentence));
  }
  if (!future_rows.empty())
    out.insert(out.begin(), future_sentence(future_rows));
  return out;
}

std::string at_precision(double value, int digits) {
  return std::isfinite(value) ? fmt::format("{:.{}g}", value, digits)
                              : format_double(value);
}

// Short, but never so short that two different values look the same.
int digits_to_tell_apart(double a, double b) {
  if (!std::isfinite(a) || !std::isfinite(b) || a == b) return 6;
  for (int digits : {6, 9})
    if (at_precision(a, digits) != at_precision(b, digits)) return digits;
  return 17;
}

std::string index_text(std::int64_t index) {
  return index < 0 ? "-" : std::to_string(index);
}

using Index = std::int64_t Finding::*;

void add_index_column(std::span<const FindingEntry> shown, const char* title,
                      Index member, std::vector<Column>& columns) {
  const bool known = std::ranges::any_of(shown, [&](const FindingEntry& entry) {
    return entry.finding->*member >= 0;
  });
  if (!known) return;
  Column column{.title = title, .cells = {}};
  for (const FindingEntry& entry : shown)
    column.cells.push_back({index_text(entry.finding->*member)});
  columns.push_back(std::move(column));
}

std::vector<Column> finding_columns(std::span<const FindingEntry> shown) {
  std::vector<Column> columns = {{.title = "problem", .cells = {}}};
  for (const FindingEntry& entry : shown)
    columns[0].cells.push_back({std::to_string(entry.number)});
  add_index_column(shown, "batch", &Finding::batch, columns);
  add_index_column(shown, "head", &Finding::head, columns);
  add_index_column(shown, "query", &Finding::query, columns);
  add_index_column(shown, "key", &Finding::key, columns);
  add_index_column(shown, "channel", &Finding::channel, columns);
  Column observed{.title = "observed", .cells = {}};
  Column expected{.title = "expected", .cells = {}};
  Column bound{.title = "bound", .cells = {}};
  Column probe{.title = "probe", .right = false, .cells = {}};
  for (const FindingEntry& entry : shown) {
    const Finding& finding = *entry.finding;
    const int digits = digits_to_tell_apart(finding.observed, finding.expected);
    observed.cells.push_back(
        {at_precision(finding.observed, digits), Ink::kBold});
    expected.cells.push_back({at_precision(finding.expected, digits)});
    bound.cells.push_back({at_precision(finding.bound, 3)});
    probe.cells.push_back({terminal_text(finding.probe), Ink::kDim});
  }
  for (Column* column : {&observed, &expected, &bound, &probe})
    columns.push_back(std::move(*column));
  return columns;
}

// The words of a message without its numbers.
std::string wording(std::string_view message) {
  std::string words;
  for (char c : message)
    if (std::string_view("0123456789.+-").find(c) == std::string_view::npos)
      words += c;
  return words;
}

// The message without the place that its table row has just named.
std::string_view message_of(const Finding& finding) {
  std::string_view message = finding.message;
  const std::string place =
      fmt::format("batch {}, head {}, query {}: ", finding.batch, finding.head,
                  finding.query);
  if (message.starts_with(place)) message.remove_prefix(place.size());
  return message;
}

// The table of the first findings. A message stands below its row unless the
// one before says the same of other numbers.
std::string finding_rows(const FindingGroup& group, const Painter& paint) {
  const std::span<const FindingEntry> shown(
      group.entries.data(), std::min(group.entries.size(), kMostRows));
  if (shown.empty()) return {};
  const std::vector<std::string> lines =
      table_lines(finding_columns(shown), 4, paint);
  std::string out = lines[0] + "\n";
  std::string said;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    out += lines[i + 1] + "\n";
    const std::string_view message = message_of(*shown[i].finding);
    std::string words = wording(message);
    if (message.empty() || words == said) continue;
    out += paint(Ink::kDim, indented(terminal_text(message), 6));
    said = std::move(words);
  }
  return out;
}

}  // namespace

std::string draw_findings(const RunResult& run, const Painter& paint) {
  std::string out;
  for (const FindingGroup& group : group_by_check(run)) {
    out += paint(group.warning_only ? Ink::kYellow : Ink::kRed,
                 terminal_text(group.check));
    out += fmt::format(
        "  {}, {} in {}\n", group.warning_only ? "warning" : "violation",
        counted(group.total, "finding"), counted(group.problems, "problem"));
    for (const std::string& sentence : sentences(group))
      out += "  " + sentence + "\n";
    out += finding_rows(group, paint);
    const auto shown =
        static_cast<std::int64_t>(std::min(group.entries.size(), kMostRows));
    if (group.total > shown)
      out += paint(Ink::kDim,
                   fmt::format("    and {} more", group.total - shown)) +
             "\n";
    out += "\n";
  }
  return out;
}

}  // namespace attnguard
