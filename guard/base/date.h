// Calendar days, as written in policies: "2026-12-31".
#ifndef ATTNGUARD_GUARD_BASE_DATE_H_
#define ATTNGUARD_GUARD_BASE_DATE_H_

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace attnguard {

using Date = std::chrono::year_month_day;  // Gregorian, years 0000 to 9999

// Exactly YYYY-MM-DD, and a day that there is; nullopt on anything else.
std::optional<Date> parse_date(std::string_view text);

std::string date_text(const Date& date);

// The day it is now by the system's clock, in UTC: the same in every time
// zone in which a pipeline runs.
Date today_utc();

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_BASE_DATE_H_
