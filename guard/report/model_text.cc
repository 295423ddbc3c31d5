#include <fmt/format.h>

#include <algorithm>

#include "guard/report/influence_map_text.h"
#include "guard/report/model_report.h"
#include "guard/report/safe_text.h"
#include "guard/report/terminal.h"

namespace attnguard {
namespace {

constexpr std::size_t kMostOfACheck = 3;  // Of each check, in words.

std::string heading(const ModelResult& result, const Painter& paint) {
  const auto line = [&](std::string_view name, const std::string& value) {
    return paint(Ink::kDim, pad_right(name, 7)) + value + "\n";
  };
  std::string out =
      line("model", paint(Ink::kBold, terminal_text(result.model)));
  if (!result.description.empty())
    out += line("", terminal_text(result.description));
  const std::string text = result.random_tokens
                               ? fmt::format("{} random tokens, seed {}",
                                             result.num_tokens, result.seed)
                               : counted(result.num_tokens, "given token");
  return out + line("text", text) + "\n";
}

// Checks, verdicts, and what each rests on.
std::string check_table(const ModelResult& result, const Painter& paint) {
  if (result.checks.empty()) return {};
  std::vector<Column> columns(3);
  columns[0] = {.title = "check", .right = false, .cells = {}};
  columns[1] = {.title = "result", .right = false, .cells = {}};
  columns[2] = {.title = "evidence", .right = false, .cells = {}};
  for (const CheckResult& check : result.checks) {
    columns[0].cells.push_back({terminal_text(check.check)});
    columns[1].cells.push_back(
        {verdict_words(check.verdict), verdict_ink(check.verdict)});
    columns[2].cells.push_back(
        {terminal_text(check.coverage.empty() ? check.note : check.coverage)});
  }
  std::string out;
  for (const std::string& line : table_lines(columns, 0, paint))
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  return out + "\n";
}

std::string loss_lines(const LossGap& loss, const Painter& paint) {
  const bool differs = !(loss.mean_difference <= loss.bound);
  std::string out =
      paint(Ink::kBold, "loss of the text, in nats per token") + "\n" +
      fmt::format("  one pass        {:8.4f}\n  token by token  {:8.4f}\n",
                  loss.one_pass, loss.token_by_token);
  std::string gap = fmt::format("  gap             {:+8.4f}", loss.gap());
  if (!differs)
    gap += "  (rounding)";
  else if (loss.gap() > loss.bound)
    gap += "  read from its own future";
  else
    gap += "  of either sign where nothing was trained to use what leaks";
  out += paint(differs ? Ink::kRed : Ink::kPlain, gap) + "\n";
  return out + fmt::format(
                   "  each position's loss differs by {:.3g} on average; "
                   "rounding explains {:.3g}\n\n",
                   loss.mean_difference, loss.bound);
}

std::string findings(const ModelResult& result, const Painter& paint) {
  std::string out;
  for (const CheckResult& check : result.checks) {
    const bool silent = check.verdict != Verdict::kViolation &&
                        check.verdict != Verdict::kInconclusive &&
                        check.verdict != Verdict::kEngineError;
    if (silent) continue;
    out +=
        paint(verdict_ink(check.verdict), terminal_text(check.check) + "  " +
                                              verdict_words(check.verdict)) +
        (check.num_findings > 0 ? ", " + counted(check.num_findings, "finding")
                                : "") +
        "\n";
    if (!check.note.empty()) out += indented(terminal_text(check.note), 2);
    for (std::size_t i = 0; i < std::min(kMostOfACheck, check.findings.size());
         ++i)
      out +=
          indented(fmt::format("{}: {}", terminal_text(check.findings[i].probe),
                               terminal_text(check.findings[i].message)),
                   2);
    const auto told = static_cast<std::int64_t>(
        std::min(kMostOfACheck, check.findings.size()));
    if (check.num_findings > told)
      out += fmt::format("  and {} more\n", check.num_findings - told);
    out += "\n";
  }
  return out;
}

std::string map(const ModelResult& result, const Painter& paint) {
  if (!result.map) return {};
  const bool failed = result.verdict == Verdict::kViolation;
  return paint(Ink::kBold, failed ? "smallest failing case" : "influence map") +
         "\n  " + terminal_text(result.map->problem) +
         "; which tokens (keys) move which logits (queries):\n\n" +
         draw_influence_map(*result.map, paint) + "\n";
}

std::string last_line(const ModelResult& result, const Painter& paint) {
  std::int64_t passed = 0, violated = 0, other = 0, checked = 0;
  for (const CheckResult& check : result.checks) {
    if (check.verdict == Verdict::kNotApplicable) continue;
    ++checked;
    passed += check.verdict == Verdict::kPass;
    violated += check.verdict == Verdict::kViolation;
    other +=
        check.verdict != Verdict::kPass && check.verdict != Verdict::kViolation;
  }
  std::string counts;
  if (violated > 0) counts += fmt::format("{} violated, ", violated);
  if (other > 0) counts += fmt::format("{} without a result, ", other);
  return paint(verdict_ink(result.verdict), verdict_words(result.verdict)) +
         fmt::format(
             "  {}: {}{} passed; {}, {:.2f} s in the model, {:.2f} s in "
             "the guard\n",
             counted(checked, "check"), counts, passed,
             counted(result.model_calls, "call"), result.model_seconds,
             result.guard_seconds);
}

}  // namespace

std::string model_text_report(const ModelResult& result,
                              const ReportOptions& options) {
  const Painter paint(options.color);
  std::string out = paint(Ink::kBold, options.version.empty()
                                          ? "attnguard"
                                          : "attnguard " + options.version) +
                    "\n";
  if (!options.command_line.empty())
    out += paint(Ink::kDim, terminal_text(options.command_line)) + "\n";
  out += "\n" + heading(result, paint);
  if (!result.note.empty()) out += terminal_text(result.note) + "\n\n";
  out += check_table(result, paint) + findings(result, paint);
  if (result.loss) out += loss_lines(*result.loss, paint);
  out += map(result, paint);
  if (!result.replay.empty())
    out += paint(Ink::kBold, "replay it with") + "\n  " +
           terminal_text(result.replay) + "\n\n";
  return out + last_line(result, paint);
}

}  // namespace attnguard
