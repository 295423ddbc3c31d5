#include "guard/policy/runtime_values.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

#include "guard/base/text.h"

namespace attnguard {
namespace {

constexpr std::int64_t kMostEvery = 1'000'000'000'000;
constexpr std::size_t kLongestOption = 40;

Status expected(std::string_view what, std::string_view text) {
  return invalid_argument("expected " + std::string(what) + ", got '" +
                          std::string(text.substr(0, kLongestOption)) + "'");
}

struct Unit {
  std::string_view name;
  std::int64_t bytes;
};

constexpr std::array<Unit, 3> kUnits = {{
    {"GiB", std::int64_t{1} << 30},
    {"MiB", std::int64_t{1} << 20},
    {"KiB", std::int64_t{1} << 10},
}};

Status unknown(std::string_view what, std::string_view text,
               std::span<const std::string_view> known) {
  text = text.substr(0, kLongestOption);
  return invalid_argument("unknown " + std::string(what) + " '" +
                          std::string(text) + "'" + suggestion(text, known));
}

}  // namespace

Result<std::int64_t> parse_one_in(std::string_view text) {
  constexpr std::string_view kExpected =
      "1/N (one in N), 1 (every one) or 0 (none)";
  if (text == "0" || text == "off") return std::int64_t{0};
  if (text == "1") return std::int64_t{1};
  if (!text.starts_with("1/")) return expected(kExpected, text);
  const auto every = parse_int(text.substr(2));
  if (!every || *every < 1 || *every > kMostEvery)
    return expected(kExpected, text);
  return *every;
}

std::string one_in_text(std::int64_t every) {
  return every <= 1 ? std::to_string(every) : "1/" + std::to_string(every);
}

Result<std::optional<double>> parse_share(std::string_view text) {
  constexpr std::string_view kExpected =
      "a share such as 0.5% or 0.005, at most 100%, or none";
  if (text == "none") return std::optional<double>();
  const bool percent = text.ends_with('%');
  const auto number =
      parse_double(percent ? trim(text.substr(0, text.size() - 1)) : text);
  const double share = number.value_or(NAN) / (percent ? 100 : 1);
  if (!(share >= 0 && share <= 1)) return expected(kExpected, text);
  return std::optional<double>(share);
}

std::string share_text(const std::optional<double>& share) {
  if (!share) return "none";
  // As percent where that reads back the same.
  char percent[32];
  std::snprintf(percent, sizeof(percent), "%.12g", *share * 100);
  if (parse_double(percent).value_or(-1) / 100 == *share)
    return std::string(percent) + '%';
  return format_double(*share);
}

Result<std::int64_t> parse_bytes(std::string_view text) {
  constexpr std::string_view kExpected = "a size such as 64MiB, 1GiB or 65536";
  std::int64_t unit = 1;
  std::string_view number = text;
  for (const Unit& known : kUnits)
    if (text.ends_with(known.name)) {
      unit = known.bytes;
      number = trim(text.substr(0, text.size() - known.name.size()));
    }
  const auto count = parse_int(number);
  std::int64_t bytes = 0;
  if (!count || *count < 0 || __builtin_mul_overflow(*count, unit, &bytes))
    return expected(kExpected, text);
  return bytes;
}

std::string bytes_text(std::int64_t bytes) {
  for (const Unit& unit : kUnits)
    if (bytes > 0 && bytes % unit.bytes == 0)
      return std::to_string(bytes / unit.bytes) + std::string(unit.name);
  return std::to_string(bytes);
}

Result<double> parse_amount(std::string_view text, std::string_view unit) {
  std::string_view number = text;
  if (!unit.empty() && text.ends_with(unit))
    number = trim(text.substr(0, text.size() - unit.size()));
  const auto value = parse_double(number);
  if (!value || !std::isfinite(*value) || *value < 0)
    return expected("a number from 0 on", text);
  return *value + 0.0;  // -0 becomes 0
}

Result<std::int64_t> parse_count(std::string_view text, std::int64_t lowest,
                                 std::int64_t highest) {
  const auto value = parse_int(text);
  if (!value || *value < lowest || *value > highest)
    return expected("a whole number from " + std::to_string(lowest) + " to " +
                        std::to_string(highest),
                    text);
  return *value;
}

Result<bool> parse_switch(std::string_view text) {
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  return expected("true or false", text);
}

Result<ActionSet> parse_actions(std::string_view text) {
  std::vector<std::string_view> known;
  for (const ActionName& action : all_actions()) known.push_back(action.name);
  ActionSet actions = kActionCount;
  for (std::string_view piece : split(text, ',')) {
    bool found = false;
    for (const ActionName& action : all_actions())
      if (action.name == piece) {
        actions |= action.action;
        found = true;
      }
    if (!found) return unknown("action", piece, known);
  }
  return actions;
}

std::string actions_text(ActionSet actions) {
  std::string text;
  for (const ActionName& action : all_actions())
    if ((actions & action.action) != 0 && action.action != kActionCount)
      text += (text.empty() ? "" : ",") + std::string(action.name);
  return text.empty() ? "count" : text;
}

Result<Severity> parse_severity(std::string_view text) {
  std::vector<std::string_view> known;
  for (Severity severity :
       {Severity::kError, Severity::kWarning, Severity::kOff}) {
    known.push_back(severity_name(severity));
    if (known.back() == text) return severity;
  }
  return unknown("severity", text, known);
}

}  // namespace attnguard
