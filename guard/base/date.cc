#include "guard/base/date.h"

#include <algorithm>
#include <cstdio>

namespace attnguard {
namespace {

constexpr std::string_view kPattern = "dddd-dd-dd";

bool fits_pattern(std::string_view text) {
  return std::equal(text.begin(), text.end(), kPattern.begin(), kPattern.end(),
                    [](char c, char wanted) {
                      return wanted == 'd' ? c >= '0' && c <= '9' : c == wanted;
                    });
}

// Of digits only.
int number(std::string_view digits) {
  int value = 0;
  for (char c : digits) value = value * 10 + (c - '0');
  return value;
}

}  // namespace

std::optional<Date> parse_date(std::string_view text) {
  if (!fits_pattern(text)) return std::nullopt;
  const Date date(
      std::chrono::year(number(text.substr(0, 4))),
      std::chrono::month(static_cast<unsigned>(number(text.substr(5, 2)))),
      std::chrono::day(static_cast<unsigned>(number(text.substr(8, 2)))));
  if (!date.ok()) return std::nullopt;
  return date;
}

std::string date_text(const Date& date) {
  char buffer[32];
  std::snprintf(
      buffer, sizeof(buffer), "%04d-%02u-%02u", static_cast<int>(date.year()),
      static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
  return buffer;
}

Date today_utc() {
  return Date(
      std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now()));
}

}  // namespace attnguard
