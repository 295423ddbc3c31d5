// What a wrong policy is told: the place, and words that lead to the fix.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/policy/policy_testing.h"

namespace attnguard {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// `text` without its version line; places count that line.
std::vector<std::string> errors_after_version(const std::string& text) {
  return errors("version: 1\n" + text);
}

// For errors within one tolerance: "tolerances: {finite: VALUE}".
std::vector<std::string> tolerance_errors(const std::string& value) {
  return errors_after_version("tolerances: {finite: " + value + "}\n");
}

auto Error(const std::string& place, const std::string& words) {
  return AllOf(StartsWith(place + ' '), HasSubstr(words));
}

TEST(PolicyErrors, NamesTheNearestKnownKey) {
  EXPECT_THAT(errors_after_version("chekcs: {}\n"),
              ElementsAre("2:1 unknown key 'chekcs'; did you mean 'checks'?"));
}

TEST(PolicyErrors, ListsTheKnownKeysWhenNoneIsNear) {
  EXPECT_THAT(errors_after_version("colour: 1\n"),
              ElementsAre("2:1 unknown key 'colour'; known: version, extends, "
                          "seed, coverage, checks, tolerances, problems, "
                          "extra_problems, engines, suppressions, runtime"));
}

TEST(PolicyErrors, RefusesADuplicateKeyAndNamesBothLines) {
  EXPECT_THAT(errors_after_version("seed: 1\n\nseed: 1\n"),
              ElementsAre("4:1 duplicate key 'seed'; it is first given at line "
                          "2: keep one"));
  EXPECT_THAT(errors("version: 1\nversion: 1\n"),
              ElementsAre(Error("2:1", "first given at line 1")));
  EXPECT_THAT(errors_after_version("checks: {finite: off, finite: off}\n"),
              ElementsAre(Error("2:23", "duplicate key 'finite'")));
  EXPECT_THAT(errors_after_version("tolerances:\n"
                                   "  finite: {fp16: 1, fp16: 1}\n"),
              ElementsAre(Error("3:21", "duplicate key 'fp16'")));
  EXPECT_THAT(errors_after_version("engines:\n"
                                   "  a: {coverage: full}\n"
                                   "  \"a\": {coverage: full}\n"),
              ElementsAre(Error("4:3", "first given at line 3")));
  EXPECT_THAT(errors_after_version("problems:\n  - {batch: 1, batch: 2}\n"),
              ElementsAre(Error("3:16", "duplicate key 'batch'")));
}

TEST(PolicyErrors, AsksForTheVersion) {
  EXPECT_THAT(errors("seed: 1\n"),
              ElementsAre("1:1 the key 'version' is missing; add "
                          "'version: 1'"));
}

TEST(PolicyErrors, ANewerVersionIsTheOnlyErrorReported) {
  EXPECT_THAT(errors("version: 2\nnew_key: 1\n"),
              ElementsAre(Error("1:10",
                                "version 2 is newer than the version "
                                "1 that this attnguard reads")));
  EXPECT_THAT(errors("new_key: 1\nversion: 99999999999999999999\n"),
              ElementsAre(Error("2:10", "newer")));
}

TEST(PolicyErrors, RefusesAnyOtherVersion) {
  EXPECT_THAT(errors("version: 0\n"),
              ElementsAre("1:10 version: expected the number 1, got '0'"));
  EXPECT_THAT(errors("version: 01\n"), ElementsAre(Error("1:10", "'01'")));
  EXPECT_THAT(errors("version: 1.0\n"), ElementsAre(Error("1:10", "'1.0'")));
  EXPECT_THAT(errors("version: \"1\"\n"),
              ElementsAre(Error("1:10", "got '1' in quotes")));
  EXPECT_THAT(errors("version: [1]\n"), ElementsAre(Error("1:10", "a list")));
  EXPECT_THAT(errors("version:\n"),
              ElementsAre(Error("1:1", "'version' has no value")));
}

TEST(PolicyErrors, AnEmptyPolicySaysHowToBegin) {
  for (const char* text : {"", "\n\n", "# a comment\n", "---\n", "~\n"})
    EXPECT_THAT(errors(text), ElementsAre("1:1 the policy is empty; begin with "
                                          "'version: 1'"))
        << text;
}

TEST(PolicyErrors, ThePolicyIsAMap) {
  EXPECT_THAT(errors("- version: 1\n"), ElementsAre(Error("1:1", "a list")));
  EXPECT_THAT(errors("policy\n"), ElementsAre(Error("1:1", "'policy'")));
  EXPECT_THAT(errors("version:1\n"),
              ElementsAre(Error("1:1", "a blank follows each ':'")));
}

TEST(PolicyErrors, RefusesASecondDocument) {
  EXPECT_THAT(errors("version: 1\n---\nversion: 1\n"),
              ElementsAre("2:1 a second document begins here; keep one policy "
                          "per file"));
  EXPECT_THAT(errors("version: 1\n...\nseed: 1\n"),
              ElementsAre(Error("3:1", "expected the end of the document")));
}

TEST(PolicyErrors, RefusesAnchorsAliasesAndCycles) {
  EXPECT_THAT(errors_after_version("problems:\n"
                                   "  - dtype: &d fp32\n"
                                   "  - dtype: *d\n"),
              ElementsAre(Error("3:12", "anchors (&d) are refused"),
                          Error("4:12", "aliases (*name) are refused")));
  EXPECT_THAT(errors("&a [*a]\n"),
              ElementsAre(Error("1:1", "anchors (&a) are refused"),
                          Error("1:1", "a policy is a map"),
                          Error("1:5", "aliases (*name) are refused")));
}

TEST(PolicyErrors, AGlobThatBeginsWithAStarNeedsQuotes) {
  EXPECT_THAT(errors_after_version("engines:\n  *cpu: {coverage: full}\n"),
              ElementsAre(Error("3:3", "quote a name that begins with '*'")));
}

TEST(PolicyErrors, RefusesTags) {
  EXPECT_THAT(errors_after_version("seed: !!int 3\n"),
              ElementsAre("2:7 tags (!name) are refused: remove the tag"));
  EXPECT_THAT(errors_after_version("seed: ! 3\n"),
              ElementsAre(Error("2:7", "tags")));
  EXPECT_THAT(errors_after_version("seed: !x\n"),
              ElementsAre(Error("2:7", "tags")));
  EXPECT_THAT(errors("!2\n"), ElementsAre(Error("1:1", "tags")));
}

TEST(PolicyErrors, KeysAreNames) {
  EXPECT_THAT(errors_after_version("? [a, b]\n: 1\n"),
              ElementsAre("2:3 a key must be a name, got a list"));
  EXPECT_THAT(errors_after_version("{a: b}: 1\n"),
              ElementsAre(Error("2:1", "got a map")));
  EXPECT_THAT(errors_after_version("~: 1\n"),
              ElementsAre(Error("2:1", "got nothing")));
  EXPECT_THAT(errors_after_version("\"\": 1\n"),
              ElementsAre(Error("2:1", "got an empty text")));
}

TEST(PolicyErrors, AKeyWithoutAValueIsReportedAtTheKey) {
  EXPECT_THAT(errors_after_version("checks:\nseed: 1\n"),
              ElementsAre(Error("2:1", "the key 'checks' has no value")));
  EXPECT_THAT(errors_after_version("seed: null\n"),
              ElementsAre(Error("2:1", "'seed' has no value")));
  EXPECT_THAT(errors_after_version("seed 3\n"),
              ElementsAre(Error("2:1", "write 'key: value'")));
}

TEST(PolicyErrors, ValuesHaveTheRightType) {
  EXPECT_THAT(errors_after_version("checks: off\n"),
              ElementsAre(Error("2:9",
                                "checks: expected a map of check ids "
                                "and severities, got 'off'")));
  EXPECT_THAT(errors_after_version("tolerances: [1]\n"),
              ElementsAre(Error("2:13", "expected a map")));
  EXPECT_THAT(errors_after_version("coverage: {a: 1}\n"),
              ElementsAre(Error("2:11",
                                "known: sampled, edges, full, got a "
                                "map")));
  EXPECT_THAT(errors_after_version("engines: 5\n"),
              ElementsAre(Error("2:10", "expected a map of engine name")));
  EXPECT_THAT(errors_after_version("engines: {a: 5}\n"),
              ElementsAre(Error("2:14", "engine 'a': expected a map")));
  EXPECT_THAT(errors_after_version("problems: {batch: 1}\n"),
              ElementsAre(Error("2:11", "begin with '- ', got a map")));
  EXPECT_THAT(errors_after_version("seed: [1]\n"),
              ElementsAre(Error("2:7", "seed: expected a whole number")));
}

TEST(PolicyErrors, SeedsAreUnsignedWholeNumbers) {
  for (const char* seed :
       {"-1", "1.5", "0x10", "ten", "+1", "18446744073709551616"})
    EXPECT_THAT(
        errors_after_version("seed: " + std::string(seed) + "\n"),
        ElementsAre(Error("2:7", "from 0 to 18446744073709551615, got '" +
                                     std::string(seed) + "'")));
  EXPECT_THAT(errors_after_version("seed: 010\n"),
              ElementsAre(Error("2:7", "has a leading zero; remove it")));
  EXPECT_THAT(errors_after_version("seed: '5'\n"),
              ElementsAre(Error("2:7", "is in quotes; remove them")));
}

TEST(PolicyErrors, NamesOfChecksSeveritiesAndCoverageMustBeKnown) {
  EXPECT_THAT(errors_after_version("checks: {row_sum: off}\n"),
              ElementsAre("2:10 unknown check 'row_sum'; did you mean "
                          "'row-sum'?"));
  EXPECT_THAT(errors_after_version("tolerances: {referense: 1}\n"),
              ElementsAre(Error("2:14", "did you mean 'reference'?")));
  EXPECT_THAT(
      errors_after_version("checks: {finite: warnin}\n"),
      ElementsAre("2:18 finite: unknown severity 'warnin'; did you mean "
                  "'warning'?"));
  EXPECT_THAT(errors_after_version("coverage: edge\n"),
              ElementsAre("2:11 coverage: unknown coverage 'edge'; did you "
                          "mean 'edges'?"));
  EXPECT_THAT(errors_after_version("tolerances: {finite: {fp61: 1}}\n"),
              ElementsAre("2:23 unknown dtype 'fp61'; did you mean 'fp64'?"));
}

TEST(PolicyErrors, TolerancesAreFiniteAndNotNegative) {
  for (const char* value : {".nan", ".NaN", "nan", ".inf", "-.inf", "inf"})
    EXPECT_THAT(tolerance_errors(value),
                ElementsAre(Error("2:22", "a tolerance must be finite, got '" +
                                              std::string(value) + "'")));
  EXPECT_THAT(tolerance_errors("-1e-3"),
              ElementsAre("2:22 finite: a tolerance must not be negative, got "
                          "'-1e-3'"));
  for (const char* value : {"1e999", "1e-999", "1.2.3", "--1"})
    EXPECT_THAT(tolerance_errors(value),
                ElementsAre(Error("2:22",
                                  "is not a decimal number that a "
                                  "double can hold")));
}

TEST(PolicyErrors, TolerancesAreNumbersOrKnownWords) {
  EXPECT_THAT(tolerance_errors("exakt"),
              ElementsAre(Error("2:22", "did you mean 'exact'?")));
  EXPECT_THAT(tolerance_errors("0x10"),
              ElementsAre(Error("2:22",
                                "expected exact, auto or a number, got "
                                "'0x10'")));
  EXPECT_THAT(tolerance_errors("010"),
              ElementsAre(Error("2:22", "leading zero")));
  EXPECT_THAT(tolerance_errors("\"1e-3\""),
              ElementsAre(Error("2:22", "is in quotes; remove them")));
  EXPECT_THAT(tolerance_errors("[1]"),
              ElementsAre(Error("2:22",
                                "a map of those by dtype, got a "
                                "list")));
}

TEST(PolicyErrors, EnginesHaveOnlyTheKeysThatMayDiffer) {
  EXPECT_THAT(
      errors_after_version("engines:\n  a: {seed: 1, coverag: full}\n"),
      ElementsAre("3:7 'seed' cannot differ by engine; move it to the top "
                  "level",
                  "3:16 unknown key 'coverag'; did you mean 'coverage'?"));
}

TEST(PolicyErrors, ABadFieldValuePointsAtItsScalar) {
  EXPECT_THAT(
      errors_after_version("problems:\n"
                           "  - batch: [1, two]\n"
                           "    dtype: [fp32, fp61]\n"
                           "    maks: full\n"
                           "    layout: bhds\n"
                           "    seq_len_kv: [4, [4, x]]\n"),
      ElementsAre("3:16 batch: expected an integer, got 'two'",
                  "4:19 dtype: unknown dtype 'fp61'; did you mean 'fp64'?",
                  "5:5 unknown problem field 'maks'; did you mean 'mask'?",
                  "6:13 layout: unknown layout 'bhds'; did you mean 'bhsd'?",
                  "7:25 seq_len_kv: expected a number in the inner list, got "
                  "'x'"));
}

TEST(PolicyErrors, FieldNumbersArePlainDecimals) {
  EXPECT_THAT(
      errors_after_version("problems:\n"
                           "  - batch: 0x10\n"
                           "    num_heads: 010\n"
                           "    head_dim: \"64\"\n"
                           "    seq_len: [[05, 3]]\n"
                           "    softmax_scale: 1e999\n"),
      ElementsAre(Error("3:12", "expected an integer, got '0x10'"),
                  Error("4:16", "leading zero"), Error("5:15", "in quotes"),
                  Error("6:16", "'05' has a leading zero"),
                  Error("7:20", "expected a number, got '1e999'")));
}

TEST(PolicyErrors, AValueOutOfRangePointsAtItsScalar) {
  EXPECT_THAT(
      errors_after_version("problems:\n"
                           "  - batch: [1, 0]\n"
                           "  - softmax_scale: [.5, nan]\n"
                           "  - seq_len: -1\n"),
      ElementsAre("3:16 batch=0: must be at least 1",
                  Error("4:25", "softmax_scale must be a number from 1e-12"),
                  Error("5:14", "seq_len_q=-1: must be at least 0")));
}

TEST(PolicyErrors, AnInvalidCombinationIsNamedOnceAtItsEntry) {
  EXPECT_THAT(
      errors_after_version("problems:\n"
                           "  - dtype: [fp32, fp16]\n"
                           "    num_heads: 6\n"
                           "    num_kv_heads: [2, 4]\n"),
      ElementsAre("3:5 invalid combination: num_heads=6 is not a multiple of "
                  "num_kv_heads=4: every KV head must serve the same number of "
                  "heads (num_heads=6 num_kv_heads=4 dtype=fp32)"));
}

TEST(PolicyErrors, AMaskThatDoesNotFitALengthIsAnInvalidCombination) {
  EXPECT_THAT(errors_after_version("problems:\n"
                                   "  - seq_len: [9, 8]\n"
                                   "    mask: documents(lengths=4:5)\n"),
              ElementsAre("3:5 invalid combination: mask documents: lengths "
                          "sum to more than seq_len_kv=8 of batch entry 0; "
                          "shorten them or raise seq_len_kv (seq_len=8 "
                          "mask=documents(lengths=4:5))"));
}

TEST(PolicyErrors, AShorthandAndItsFieldExcludeEachOther) {
  EXPECT_THAT(
      errors_after_version("problems:\n"
                           "  - {seq_len: 4, seq_len_kv: 5}\n"
                           "  - {head_dim_qk: 4, head_dim: 5}\n"),
      ElementsAre("3:18 'seq_len' sets 'seq_len_kv' too, and both are given; "
                  "keep one of them",
                  Error("4:22", "'head_dim' sets 'head_dim_qk' too")));
}

TEST(PolicyErrors, ListsAreNeitherEmptyNorTooDeep) {
  EXPECT_THAT(errors_after_version("problems: []\n"),
              ElementsAre(Error("2:11",
                                "leave the key out to check the "
                                "built-in problems")));
  EXPECT_THAT(
      errors_after_version("problems:\n"
                           "  - batch: []\n"
                           "    seq_len: [[], [[4]], [~]]\n"
                           "    dtype: [fp32, , fp16]\n"
                           "    mask: {a: 1}\n"),
      ElementsAre(Error("3:12", "batch: the list is empty"),
                  Error("4:15", "the inner list is empty"),
                  Error("4:20",
                        "expected a number in the inner list, got a "
                        "list"),
                  Error("4:26", "got nothing"),
                  Error("5:12", "item 2 of the list is empty"),
                  Error("6:11", "expected a value or a list, got a map")));
}

TEST(PolicyErrors, EntriesAreMapsOfFields) {
  EXPECT_THAT(
      errors_after_version("problems:\n"
                           "  - 5\n"
                           "  - {}\n"
                           "  -\n"
                           "  - [1]\n"),
      ElementsAre(Error("3:3", "entry 3 is empty; remove it"),
                  Error("3:5", "got '5'"), Error("4:5", "got an empty one"),
                  Error("6:5", "got a list")));
}

TEST(PolicyErrors, AFlatListOfStridesIsExplainedOnce) {
  EXPECT_THAT(
      errors_after_version("problems:\n"
                           "  - query_strides: [640, 320, 40, 1]\n"),
      ElementsAre("3:20 query_strides: a list holds alternatives; write the "
                  "one value [[640,320,40,1]], a list in the list"));
}

TEST(PolicyErrors, AMaskCutAtItsCommaIsExplainedOnce) {
  EXPECT_THAT(
      errors_after_version(
          "problems:\n"
          "  - mask: [full, sliding_window(left=4,right=0), causal]\n"),
      ElementsAre("3:18 mask: the comma after 'sliding_window(left=4' ends the "
                  "item; put the whole value in quotes",
                  Error("3:50", "unknown mask 'causal'")));
}

TEST(PolicyErrors, SyntaxErrorsNameTheirPlace) {
  EXPECT_THAT(errors_after_version("checks: {finite: off\nseed: 1\n"),
              ElementsAre(Error("3:5",
                                "expected ',' or '}' here, in the map "
                                "of line 2")));
  EXPECT_THAT(errors_after_version("problems: [1, 2\n"),
              ElementsAre(Error("3:1",
                                "expected ',' or ']' here, in the list "
                                "of line 2")));
  EXPECT_THAT(errors_after_version("seed: 1\n batch: 2\n"),
              ElementsAre(Error("3:7", "a ':' cannot stand here")));
  EXPECT_THAT(errors_after_version("]\n"),
              ElementsAre(Error("2:1", "nothing is open")));
  EXPECT_THAT(errors_after_version("seed: \"1\n"),
              ElementsAre("2:7 the quote has no end"));
  EXPECT_THAT(errors_after_version("seed: 'it''s\n"),
              ElementsAre("2:7 the quote has no end"));
  EXPECT_THAT(errors_after_version("seed: \"\\q\"\n"),
              ElementsAre(Error("2:10", "YAML syntax: unknown escape")));
}

TEST(PolicyErrors, TabsCannotIndent) {
  EXPECT_THAT(errors_after_version("checks:\n\tfinite: off\n"),
              ElementsAre("3:1 a tab cannot indent YAML; use blanks"));
}

TEST(PolicyErrors, RefusesBytesThatAreNotUtf8) {
  // A stray byte, an overlong form, a surrogate, a cut sequence.
  for (const char* bytes : {"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xe2\x82"})
    EXPECT_THAT(errors_after_version("\xc3\xa4# " + std::string(bytes)),
                ElementsAre(Error("2:4",
                                  "is not UTF-8; save the file as "
                                  "UTF-8")));
  EXPECT_THAT(errors(std::string("\xff\xfev\0", 4)),
              ElementsAre("1:1 the file is UTF-16; save it as UTF-8"));
}

TEST(PolicyErrors, RefusesControlCharacters) {
  EXPECT_THAT(errors_after_version("# \x04\nseed: \x1b[31m1\n"),
              ElementsAre("2:3 the control character U+0004 is not allowed; "
                          "remove it",
                          Error("3:7", "U+001b")));
  EXPECT_THAT(errors(std::string("version: 1\n\0", 12)),
              ElementsAre(Error("2:1", "U+0000")));
}

TEST(PolicyErrors, ColumnsCountCodePoints) {
  EXPECT_THAT(errors("{version: 1, \"\xe2\x82\xac\xc3\xa4\": 1, seed: x}\n"),
              ElementsAre(Error("1:14", "unknown key '\xe2\x82\xac\xc3\xa4'"),
                          Error("1:29", "seed: expected")));
}

TEST(PolicyErrors, CollectsTheErrorsOfAWholeFile) {
  EXPECT_THAT(
      errors("seed: -1\n"
             "coverage: most\n"
             "checks: {finite: loud}\n"
             "tolerances: {memory: -1}\n"
             "problems:\n"
             "  - batch: x\n"
             "engines:\n"
             "  a: {checks: {b: off}}\n"),
      ElementsAre(StartsWith("1:1 "), StartsWith("1:7 "), StartsWith("2:11 "),
                  StartsWith("3:18 "), StartsWith("4:22 "), StartsWith("6:12 "),
                  StartsWith("8:16 ")));
}

}  // namespace
}  // namespace attnguard
