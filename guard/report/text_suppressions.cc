#include "guard/report/text_suppressions.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "guard/report/safe_text.h"
#include "guard/report/totals.h"

namespace attnguard {
namespace {

constexpr std::size_t kMostGone = 10;  // Entries of a baseline that are listed.

struct SuppressedGroup {
  std::string check;
  const AcceptedFindings* first;
  std::int64_t findings = 0;
  std::int64_t problems = 0;

  bool fits(const std::string& id, const AcceptedFindings& one) const {
    return check == id && first->kind == one.kind &&
           first->reason == one.reason && first->location == one.location;
  }
};

std::vector<SuppressedGroup> grouped(const RunResult& run) {
  std::vector<SuppressedGroup> groups;
  for (const ProblemResult& problem : run.problems)
    for (const CheckResult& check : problem.checks)
      for (const AcceptedFindings& one : check.accepted) {
        auto group = std::ranges::find_if(
            groups,
            [&](const SuppressedGroup& g) { return g.fits(check.check, one); });
        if (group == groups.end())
          group = groups.insert(group, {check.check, &one});
        group->findings += one.num_findings;
        ++group->problems;
      }
  return groups;
}

std::string entry_place(const SourceLocation& location) {
  if (location.file.empty()) return {};
  return fmt::format(" ({}:{})", location.file, location.line);
}

}  // namespace

std::string draw_suppressed(const RunResult& run, const Painter& paint) {
  std::string out;
  for (const SuppressedGroup& group : grouped(run)) {
    out += fmt::format("  {}, {}: {} in {}\n", terminal_text(group.check),
                       finding_kind_name(group.first->kind),
                       counted(group.findings, "finding"),
                       counted(group.problems, "problem"));
    const std::string why =
        group.first->reason + entry_place(group.first->location);
    out += paint(Ink::kDim, indented(terminal_text(why), 4));
  }
  if (out.empty()) return out;
  return paint(Ink::kBold, "suppressed") + "\n" + out + "\n";
}

std::string draw_unused_suppressions(std::span<const RunResult> results,
                                     const Painter& paint) {
  std::string unused, gone, expired;
  std::size_t num_gone = 0;
  for (const SuppressionUse* use : unused_suppressions(results)) {
    const std::string text = terminal_text(suppression_text(*use));
    if (!use->baseline)
      unused +=
          fmt::format("  {}:{}: {} ({})\n", terminal_text(use->location.file),
                      use->location.line, text, terminal_text(use->reason));
    else if (++num_gone <= kMostGone)
      gone += "  " + text + "\n";
  }
  if (num_gone > kMostGone)
    gone += fmt::format("  and {} more\n", num_gone - kMostGone);
  if (!unused.empty())
    unused =
        paint(Ink::kYellow, "suppressions that suppress nothing: remove them") +
        "\n" + unused + "\n";
  if (!gone.empty())
    gone = paint(Ink::kYellow,
                 "known findings that are gone: write a new baseline") +
           "\n" + gone + "\n";
  // A run that reaches one says so in its note.
  for (const SuppressionUse* use : expired_suppressions(results))
    if (!use->reached)
      expired += fmt::format(
          "  {}:{}: {}, on {} ({})\n", terminal_text(use->location.file),
          use->location.line, terminal_text(suppression_text(*use)),
          terminal_text(use->expires), terminal_text(use->reason));
  if (!expired.empty())
    expired = paint(Ink::kYellow,
                    "expired suppressions, which fail a run that reaches them: "
                    "remove them, or give them a new date") +
              "\n" + expired + "\n";
  return unused + gone + expired;
}

}  // namespace attnguard
