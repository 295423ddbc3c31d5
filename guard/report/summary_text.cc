#include "guard/report/summary_text.h"

#include <fmt/format.h>

#include <array>

#include "guard/report/terminal.h"

namespace attnguard {

std::string problem_counts(const Totals& totals) {
  struct Word {
    Verdict verdict;
    const char* word;
  };
  constexpr std::array<Word, 6> kWords = {{
      {Verdict::kViolation, "violated"},
      {Verdict::kEngineError, "failed in the engine"},
      {Verdict::kInconclusive, "inconclusive"},
      {Verdict::kPass, "passed"},
      {Verdict::kUnsupported, "unsupported"},
      {Verdict::kNotApplicable, "not applicable"},
  }};
  std::string out;
  for (const Word& word : kWords) {
    const std::int64_t count = totals.of(word.verdict);
    if (count == 0) continue;
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, word.word);
  }
  if (totals.unchecked > 0)
    out += fmt::format("{}{} unchecked", out.empty() ? "" : ", ",
                       totals.unchecked);
  if (totals.suppressed > 0)
    out += (out.empty() ? "" : ", ") +
           counted(totals.suppressed, "suppressed finding");
  return counted(totals.num_problems, "problem") +
         (out.empty() ? "" : ": " + out);
}

std::string run_counts(const Totals& totals) {
  std::string out = problem_counts(totals);
  bool first = totals.num_problems == 0 && totals.suppressed == 0;
  const auto add = [&](std::int64_t count, std::string_view noun) {
    if (count == 0) return;
    out += (first ? ": " : ", ") + counted(count, noun);
    first = false;
  };
  add(totals.warnings, "warning");
  add(totals.expired, "expired suppression");
  return out;
}

std::string duration(double seconds) {
  if (seconds >= 100) return fmt::format("{:.0f} s", seconds);
  if (seconds >= 1) return fmt::format("{:#.3g} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:#.3g} ms", seconds * 1e3);
  return fmt::format("{:.1f} us", seconds * 1e6);
}

}  // namespace attnguard
