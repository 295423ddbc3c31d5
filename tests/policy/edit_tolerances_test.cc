// Tolerances written into a policy's text: the rest stays as it is.
#include "guard/policy/edit_tolerances.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "guard/check/check.h"
#include "tests/policy/policy_testing.h"
#include "tests/support/text_file.h"

namespace attnguard {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<std::string> kHeading = {"tuned"};

std::vector<NewTolerance> row_sum(double number) {
  return {{"row-sum",
           Dtype::kFp16,
           {Tolerance::Kind::kNumber, number},
           {"measured"}}};
}

Result<std::string> edit(std::string_view text, double number = 0.25,
                         const std::string& engine = "mine") {
  return edit_tolerances(text, "policy.yaml", engine, kHeading, row_sum(number),
                         check_ids());
}

std::string edited(std::string_view text, double number = 0.25) {
  const Result<std::string> result = edit(text, number);
  EXPECT_TRUE(result.ok()) << result.status().message() << text;
  return result.ok() ? result.value() : "";
}

// Every line of the input is still there, in order.
void expect_kept(const std::string& before, const std::string& after) {
  const auto lines = lines_of(after);
  auto at = lines.begin();
  for (const std::string& line : lines_of(before)) {
    at = std::find(at, lines.end(), line);
    ASSERT_NE(at, lines.end()) << "lost: " << line << "\nin:\n" << after;
    ++at;
  }
}

double tolerance_in(const std::string& text) {
  const PolicyParse parsed = parse_policy(text, "policy.yaml", check_ids());
  EXPECT_TRUE(parsed.policy) << format_diagnostics(parsed.diagnostics);
  if (!parsed.policy) return -1;
  return parsed.policy->resolve("mine")
      .check("row-sum")
      .tolerance(Dtype::kFp16)
      .number;
}

TEST(EditTolerances, ATextWithoutEnginesKeepsTheBuiltInOnes) {
  const std::string before = "# mine\nversion: 1  # required\nseed: 3\n";
  const std::string after = edited(before);
  EXPECT_EQ(after,
            "# mine\nversion: 1  # required\nextends: built-in\nseed: 3\n"
            "\nengines:\n"
            "  \"mine\":\n"
            "    tolerances:\n"
            "      # tuned\n"
            "      row-sum:\n"
            "        # measured\n"
            "        fp16: 0.25\n");
}

TEST(EditTolerances, CommentsAndOrderStay) {
  const std::string before =
      "# head\n"
      "version: 1\n"
      "engines:          # the engines\n"
      "    # of others\n"
      "    \"ggml:*\":\n"
      "        checks: {finite: off}  # why\n"
      "        # inside\n"
      "\n"
      "# between\n"
      "seed: 4\n"
      "problems:\n"
      "- seq_len: [4,\n"
      "    5]  # two\n"
      "# tail\n";
  const std::string after = edited(before);
  expect_kept(before, after);
  EXPECT_EQ(tolerance_in(after), 0.25);
  EXPECT_THAT(after, HasSubstr("\n    \"mine\":\n      tolerances:\n"));
}

TEST(EditTolerances, AnOwnEntryGetsThem) {
  const std::string before =
      "version: 1\n"
      "engines:\n"
      "  mine:\n"
      "    coverage: full  # slow\n"
      "  other:\n"
      "    coverage: full\n";
  const std::string after = edited(before);
  expect_kept(before, after);
  EXPECT_EQ(tolerance_in(after), 0.25);
  EXPECT_LT(after.find("row-sum"), after.find("other:"));
}

TEST(EditTolerances, ASecondRunReplacesTheFirst) {
  const std::string before =
      "version: 1\n"
      "engines:\n"
      "  mine:\n"
      "    tolerances:\n"
      "      reference: {fp16: 0.5,\n"
      "        bf16: 0.75}   # kept as values\n"
      "    coverage: full  # slow\n";
  const std::string once = edited(before);
  const std::string twice = edited(once, 0.125);
  EXPECT_EQ(tolerance_in(once), 0.25);
  EXPECT_EQ(tolerance_in(twice), 0.125);
  EXPECT_EQ(lines_of(once).size(), lines_of(twice).size());
  const Settings settings = parse(twice).policy->resolve("mine");
  EXPECT_EQ(settings.check("reference").tolerance(Dtype::kBf16).number, 0.75);
  EXPECT_EQ(settings.check("reference").tolerance(Dtype::kFp16).number, 0.5);
  EXPECT_THAT(twice, HasSubstr("    coverage: full  # slow\n"));
}

TEST(EditTolerances, EmptyMapsAreFilled) {
  EXPECT_EQ(tolerance_in(edited("version: 1\nengines: {}  # none\n")), 0.25);
  EXPECT_EQ(tolerance_in(edited("version: 1\nengines:\n  mine: {}\n")), 0.25);
}

TEST(EditTolerances, WhatItCannotEditIsRefusedWithTheReason) {
  const auto reason = [](std::string_view text) {
    const Result<std::string> result = edit(text);
    EXPECT_FALSE(result.ok()) << text;
    return result.ok() ? "" : result.status().message();
  };
  EXPECT_THAT(reason("{version: 1}\n"), HasSubstr("write its keys in lines"));
  EXPECT_THAT(reason("version: 1\nengines: {a: {coverage: full}}\n"),
              HasSubstr("each engine in lines of its own"));
  EXPECT_THAT(reason("version: 1\nengines:\n  mine: {coverage: full}\n"),
              HasSubstr("the entry of 'mine' is written in {}"));
  EXPECT_THAT(reason("version: 1\nengines:\n"
                     "  mine:\n    coverage: full\n"
                     "  m*:\n    tolerances: {row-sum: 0.5}\n"),
              HasSubstr("a later pattern below `engines` overrides"));
  EXPECT_THAT(reason("version: 1\nchekcs: {}\n"), HasSubstr("unknown key"));
}

TEST(EditTolerances, OddNamesAndEndingsAreQuoted) {
  const std::string engine = "plugin:./a \"b\".so,x=1";
  const Result<std::string> result = edit(
      "version: 1\r\nengines:\r\n  other:\r\n    coverage: full", 0.25, engine);
  ASSERT_TRUE(result.ok()) << result.status().message();
  const PolicyParse parsed = parse(result.value());
  ASSERT_TRUE(parsed.policy);
  EXPECT_EQ(parsed.policy->resolve(engine)
                .check("row-sum")
                .tolerance(Dtype::kFp16)
                .number,
            0.25);
}

}  // namespace
}  // namespace attnguard
