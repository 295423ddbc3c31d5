#include "guard/base/version.h"

#include <algorithm>
#include <string_view>

#include "gtest/gtest.h"

namespace attnguard {
namespace {

TEST(Version, IsThatOfTheProject) {
  EXPECT_EQ(version_string(), ATTNGUARD_VERSION);
}

TEST(Version, HasThreeNumbers) {
  EXPECT_EQ(std::ranges::count(version_string(), '.'), 2);
  EXPECT_EQ(version_string().find_first_not_of("0123456789."),
            std::string_view::npos);
}

}  // namespace
}  // namespace attnguard
