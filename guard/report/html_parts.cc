#include "guard/report/html_parts.h"

#include <fmt/format.h>

#include "guard/report/safe_text.h"
#include "guard/report/terminal.h"

namespace attnguard {
namespace {

constexpr std::size_t kMostName = 2000;  // Bytes.

}  // namespace

std::string_view verdict_css(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return "pass";
    case Verdict::kViolation:
      return "violation";
    case Verdict::kInconclusive:
      return "inconclusive";
    case Verdict::kEngineError:
      return "engine-error";
    case Verdict::kNotApplicable:
    case Verdict::kUnsupported:
      break;
  }
  return "neutral";
}

std::string verdict_badge(Verdict verdict) {
  std::string_view sign = "\xE2\x80\x93";                     // –
  if (verdict == Verdict::kPass) sign = "\xE2\x9C\x93";       // ✓
  if (verdict == Verdict::kViolation) sign = "\xE2\x9C\x95";  // ✕
  if (verdict == Verdict::kInconclusive) sign = "?";
  if (verdict == Verdict::kEngineError) sign = "!";
  return fmt::format(
      "<span class=\"badge {}\"><span aria-hidden=\"true\">{} </span>{}</span>",
      verdict_css(verdict), sign, verdict_words(verdict));
}

std::string warning_badge() {
  return "<span class=\"badge warning\"><span aria-hidden=\"true\">! </span>"
         "warning</span>";
}

std::string html_table(std::string_view caption, const std::string& head,
                       const std::string& rows) {
  return fmt::format(
      "<div class=\"scroll\" role=\"region\" tabindex=\"0\" "
      "aria-label=\"{0}\"><table><caption>{0}</caption><thead><tr>{1}</tr>"
      "</thead><tbody>{2}</tbody></table></div>\n",
      html_text(caption), head, rows);
}

std::string html_details(std::string_view summary, const std::string& inside,
                         bool open) {
  return fmt::format("<details{}><summary>{}</summary>{}</details>\n",
                     open ? " open=\"\"" : "", html_text(summary), inside);
}

std::string html_name(std::string_view text) {
  return html_text(shortened(text, kMostName));
}

}  // namespace attnguard
