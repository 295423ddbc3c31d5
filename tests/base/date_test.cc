#include "guard/base/date.h"

#include <gtest/gtest.h>

namespace attnguard {
namespace {

TEST(Date, ReadsDaysThatThereAre) {
  for (const char* text : {"2026-12-31", "2024-02-29", "0000-01-01"}) {
    const std::optional<Date> date = parse_date(text);
    ASSERT_TRUE(date) << text;
    EXPECT_EQ(date_text(*date), text);
  }
}

TEST(Date, RefusesAnythingElse) {
  for (const char* text :
       {"", "2026-2-3", "2026-02-30", "2025-02-29", "2026-13-01", "2026-00-10",
        "2026-12-31 ", " 2026-12-31", "2026/12/31", "26-12-31", "+026-12-31",
        "2026-12-3a", "2026-12-311"})
    EXPECT_FALSE(parse_date(text)) << text;
}

TEST(Date, IsOrdered) {
  EXPECT_LT(*parse_date("2026-12-31"), *parse_date("2027-01-01"));
  EXPECT_LT(*parse_date("2026-09-30"), *parse_date("2026-10-01"));
}

TEST(Date, TodayIsADay) {
  EXPECT_TRUE(today_utc().ok());
  EXPECT_GT(today_utc(), *parse_date("2024-01-01"));
}

}  // namespace
}  // namespace attnguard
