// The error blocks as a person sees them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/policy/policy_testing.h"

namespace attnguard {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string blocks(std::string_view text) {
  return format_diagnostics(parse(text).diagnostics);
}

// The column of the caret and the character above it.
struct Caret {
  std::size_t column;
  char above;
};

Caret caret_of(const std::string& block) {
  const auto caret_line = block.rfind('\n', block.size() - 2) + 1;
  const auto text_line = block.rfind('\n', caret_line - 2) + 1;
  const std::size_t column = block.find('^', caret_line) - caret_line;
  return {column, block[text_line + column]};
}

TEST(PolicyFormat, ShowsPlaceMessageLineAndCaret) {
  EXPECT_EQ(blocks("version: 1\n"
                   "\n"
                   "\n"
                   "\n"
                   "\n"
                   "\n"
                   "\n"
                   "\n"
                   "\n"
                   "tolerances:\n"
                   "  reference: {fp16: -1, fp32: 1}\n"),
            "policy.yaml:11:21: error: reference: a tolerance must not be "
            "negative, got '-1'\n"
            "  11 |   reference: {fp16: -1, fp32: 1}\n"
            "     |                     ^\n");
}

TEST(PolicyFormat, AMissingKeyPointsAtTheFirstLine) {
  EXPECT_EQ(blocks("seed: 1\n"),
            "policy.yaml:1:1: error: the key 'version' is missing; add "
            "'version: 1'\n"
            "  1 | seed: 1\n"
            "    | ^\n");
}

TEST(PolicyFormat, WithoutALineThereIsNoExcerpt) {
  EXPECT_EQ(blocks(""),
            "policy.yaml:1:1: error: the policy is empty; begin with "
            "'version: 1'\n");
}

TEST(PolicyFormat, ControlCharactersAreShownEscaped) {
  const std::string block = blocks("version: 1\n# \x1b[2J \x07\n");
  EXPECT_THAT(block, HasSubstr("  2 | # \\x1b[2J \\x07\n"
                               "    |   ^\n"));
  EXPECT_THAT(block, HasSubstr("    |           ^\n"));
  EXPECT_THAT(block, Not(HasSubstr("\x1b")));
}

TEST(PolicyFormat, EscapesInMessagesToo) {
  const std::string block = blocks("version: 1\n\"\\e[2J\\u202e\": 1\n");
  EXPECT_THAT(block, HasSubstr("unknown key '\\x1b[2J\\u202e'"));
}

TEST(PolicyFormat, TheCaretStandsUnderItsCharacterAfterUmlautsAndTabs) {
  const std::string block = blocks("{version: 1, \"\xc3\xa4\xc3\xb6\":\t1}\n");
  EXPECT_THAT(block, HasSubstr("  1 | {version: 1, \"\xc3\xa4\xc3\xb6\": 1}\n"
                               "    |              ^\n"));
}

TEST(PolicyFormat, LongLinesAreCutAroundTheCaret) {
  const std::string fill(5000, 'x');
  const std::string block = blocks("{version: 1, coverage: " + fill +
                                   ", seed: Q, checks: " + fill + "}\n");
  const auto at = block.find("seed: expected");
  ASSERT_NE(at, std::string::npos);
  const std::string second =
      block.substr(at, block.find("policy.yaml", at) - at);
  for (std::size_t start = 0, end; start < second.size(); start = end + 1) {
    end = second.find('\n', start);
    EXPECT_LT(end - start, 200u);
  }
  EXPECT_THAT(second, HasSubstr("| ...xxx"));
  EXPECT_EQ(caret_of(second).above, 'Q');
}

TEST(PolicyFormat, LongValuesAreCutInMessages) {
  EXPECT_LT(parse("version: 1\nseed: " + std::string(100000, '9') + "\n")
                .diagnostics.at(0)
                .message.size(),
            200u);
}

TEST(PolicyFormat, ManyErrorsEndInACount) {
  std::string text = "version: 1\n";
  for (int i = 0; i < 80; ++i) text += "key" + std::to_string(i) + ": 1\n";
  const auto found = errors(text);
  EXPECT_EQ(found.size(), 51u);
  EXPECT_EQ(found.back(), "52:1 too many errors: 30 more are not shown");
}

}  // namespace
}  // namespace attnguard
