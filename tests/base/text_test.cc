#include "guard/base/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "guard/base/rng.h"

namespace attnguard {
namespace {

using ::testing::ElementsAre;

TEST(Text, TrimsBlanksAtBothEndsOnly) {
  EXPECT_EQ(trim("  a b\t"), "a b");
  EXPECT_EQ(trim(" \t "), "");
  EXPECT_EQ(trim(""), "");
}

TEST(Text, SplitsOutsideParenthesesOnly) {
  EXPECT_THAT(split("a,b", ','), ElementsAre("a", "b"));
  EXPECT_THAT(split(" a , b(c,d) ,e", ','), ElementsAre("a", "b(c,d)", "e"));
  EXPECT_THAT(split("f(g(x,y),z),w", ','), ElementsAre("f(g(x,y),z)", "w"));
  EXPECT_THAT(split("", ','), ElementsAre(""));
  EXPECT_THAT(split(",", ','), ElementsAre("", ""));
}

TEST(Text, ParsesWholeIntegersOnly) {
  EXPECT_EQ(parse_int("42"), 42);
  EXPECT_EQ(parse_int("-7"), -7);
  EXPECT_EQ(parse_int("9223372036854775807"),
            std::numeric_limits<std::int64_t>::max());
  for (const char* text :
       {"", "x", "4x", " 4", "4 ", "4.0", "+4", "0x10", "9223372036854775808"})
    EXPECT_FALSE(parse_int(text).has_value()) << text;
}

TEST(Text, ParsesWholeNumbersOnly) {
  EXPECT_EQ(parse_double("0.125"), 0.125);
  EXPECT_EQ(parse_double("-1e-3"), -1e-3);
  for (const char* text : {"", "x", "1,5", "1.5f", " 1", "1e999"})
    EXPECT_FALSE(parse_double(text).has_value()) << text;
}

TEST(Text, FormatsTheShortestDecimalThatComesBack) {
  EXPECT_EQ(format_double(0.1), "0.1");
  EXPECT_EQ(format_double(-3), "-3");
  EXPECT_EQ(format_double(std::nan("")), "nan");
  EXPECT_EQ(format_double(HUGE_VAL), "inf");
  EXPECT_EQ(format_double(-HUGE_VAL), "-inf");
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const double value = std::bit_cast<double>(mix_bits(i));
    if (!std::isfinite(value)) continue;
    ASSERT_EQ(parse_double(format_double(value)), value);
  }
}

TEST(Text, FindsTheNearestKnownName) {
  const std::string_view known[] = {"row-sum", "visibility", "reference"};
  EXPECT_EQ(nearest_name("rowsum", known), "row-sum");
  EXPECT_EQ(nearest_name("refrence", known), "reference");
  EXPECT_EQ(nearest_name("zzzzzz", known), "");
}

TEST(Text, SuggestsOnlyWhatMayHaveBeenMeant) {
  struct Case {
    const char* name;
    std::vector<std::string_view> known;
    const char* nearest;  // "": none of them
  };
  const std::vector<std::string_view> formats = {
      "text", "json", "junit", "sarif", "github", "markdown", "html"};
  const std::vector<std::string_view> maps = {"text", "svg", "png"};
  const std::vector<std::string_view> dtypes = {"fp64", "fp32", "fp16", "bf16"};
  const std::vector<std::string_view> options = {"--jobs", "--shard", "--seed"};
  for (const Case& each : std::vector<Case>{
           // Short words: one edit, and the first letter.
           {"xml", formats, ""},
           {"pdf", formats, ""},
           {"csv", maps, ""},
           {"svf", maps, "svg"},
           {"pgn", maps, "png"},
           {"npg", maps, "png"},
           {"mng", maps, ""},
           {"jsn", formats, "json"},
           {"al", {"none", "all"}, "all"},
           {"on", {"no", "off"}, "no"},
           {"", {"a", "on"}, ""},
           // Of four and five letters one.
           {"jsno", formats, "json"},
           {"jason", formats, "json"},
           {"htm", formats, "html"},
           {"toml", formats, ""},
           {"yaml", formats, ""},
           {"int8", dtypes, ""},
           {"fp23", dtypes, "fp32"},
           {"FP32", dtypes, "fp32"},
           {"maks", {"mask", "batch"}, "mask"},
           {"chekc", {"check", "merge"}, "check"},
           {"abort", {"about", "report"}, "about"},
           // Of more a third.
           {"refrense", {"row-sum", "reference"}, "reference"},
           {"visability", {"visibility"}, "visibility"},
           {"casual_top_lfet", {"causal_top_left"}, "causal_top_left"},
           {"colour", {"coverage", "checks"}, ""},
           // The dashes of an option are right in any case.
           {"--json", options, ""},
           {"--sede", options, "--seed"},
           {"-x", options, ""},
           {"--", options, ""},
           // The beginning of one name alone.
           {"q8", {"f32", "f16", "q8_0"}, "q8_0"},
           {"visi", {"visibility", "row-sum"}, "visibility"},
           {"fp", dtypes, ""},
           {"v", {"visibility"}, ""}})
    EXPECT_EQ(nearest_name(each.name, each.known), each.nearest) << each.name;
}

TEST(Text, SuggestsTheNearestNameOrListsThemAll) {
  const std::string_view known[] = {"fp64", "fp32", "fp16"};
  EXPECT_EQ(suggestion("fp33", known), "; did you mean 'fp32'?");
  EXPECT_EQ(suggestion("quadruple", known), "; known: fp64, fp32, fp16");
}

TEST(Text, MatchesGlobs) {
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("builtin:*", "builtin:tiled"));
  EXPECT_TRUE(glob_match("*:t?led", "builtin:tiled"));
  EXPECT_TRUE(glob_match("a*b*c", "a-b-b-c"));
  EXPECT_TRUE(glob_match("", ""));
  EXPECT_FALSE(glob_match("", "a"));
  EXPECT_FALSE(glob_match("a?", "a"));
  EXPECT_FALSE(glob_match("a*b", "abc"));
  EXPECT_FALSE(glob_match("builtin", "builtin:tiled"));
  EXPECT_TRUE(glob_match("*x", "xax"));
  EXPECT_TRUE(glob_match("*", "*literal"));
}

}  // namespace
}  // namespace attnguard
