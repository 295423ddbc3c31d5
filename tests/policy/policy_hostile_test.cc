// Files that are large, deep, cut, random or no files at all end in a message.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "guard/base/rng.h"
#include "tests/policy/policy_testing.h"

namespace attnguard {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string repeated(std::string_view piece, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += piece;
  return text;
}

void expect_an_answer(std::string_view text) {
  const PolicyParse result = parse(text);
  EXPECT_NE(result.policy.has_value(), !result.diagnostics.empty()) << text;
  format_diagnostics(result.diagnostics);
}

TEST(PolicyHostile, DepthIsLimited) {
  for (const char* piece : {"[", "{", "- ", "? ", "{a: ", "[a: "})
    EXPECT_THAT(errors("version: 1\nproblems:\n  " + repeated(piece, 20000)),
                Contains(HasSubstr("nested more than 32 deep")))
        << piece;
}

TEST(PolicyHostile, TheNumberOfValuesIsLimited) {
  EXPECT_THAT(errors("version: 1\nproblems: [" + repeated("1,", 600000) + "]"),
              ElementsAre(HasSubstr("more than 500000 values")));
}

TEST(PolicyHostile, TheSizeIsLimited) {
  EXPECT_THAT(errors("version: 1\n" + repeated("#\n", 3 << 20)),
              ElementsAre("0:0 the policy is larger than 4 MiB; split it"));
}

TEST(PolicyHostile, TheGridIsLimitedAndTheEntryNamed) {
  const std::string list = "[" + repeated("1,", 400) + "1]";
  EXPECT_THAT(errors("version: 1\n"
                     "problems:\n"
                     "  - {batch: 1}\n"
                     "  - {batch: " +
                     list + ", head_dim: " + list + "}\n"),
              ElementsAre("4:5 with this entry the lists expand to more than "
                          "100000 problems; shorten them or use several "
                          "policies"));
  std::string huge = "version: 1\nproblems:\n  - {layout: bhsd";
  for (const char* field : {"batch", "num_heads", "seq_len", "head_dim_qk",
                            "head_dim_v", "softmax_scale", "num_kv_heads"})
    huge += ", " + std::string(field) + ": " + list;
  EXPECT_THAT(errors(huge + "}\n"), ElementsAre(HasSubstr("100000 problems")));
}

TEST(PolicyHostile, TheNumbersOfAGridAreLimited) {
  EXPECT_THAT(errors("version: 1\n"
                     "problems:\n"
                     "  - {batch: 20000, seq_len: [[" +
                     repeated("1,", 19999) + "1]], head_dim: [" +
                     repeated("1,", 300) + "1]}\n"),
              ElementsAre(HasSubstr("3:5 with this entry the problems hold "
                                    "more than 4000000 numbers")));
}

TEST(PolicyHostile, HugeSizesAreRefusedByTheProblem) {
  EXPECT_THAT(errors("version: 1\n"
                     "problems:\n"
                     "  - {batch: 9223372036854775807}\n"),
              ElementsAre(HasSubstr("the limit is 2^36")));
}

TEST(PolicyHostile, EveryTruncationEndsInAnAnswer) {
  const std::string_view text = default_policy_text();
  for (std::size_t size = 0; size < text.size(); size += 41)
    expect_an_answer(text.substr(0, size));
}

TEST(PolicyHostile, EveryMutationEndsInAnAnswer) {
  // Characters that mean something to YAML come more often than chance.
  constexpr std::string_view kSpecial = "[]{}:,-?&*!|>'\"%@`#~\t\n\r \\\0.\xff";
  const std::string_view text = default_policy_text();
  for (std::uint64_t round = 0; round < 500; ++round) {
    const std::uint64_t bits = derive_seed(20240229, round);
    std::string mutated(text);
    const auto at = static_cast<std::size_t>(
        uniform_below(bits, static_cast<std::int64_t>(text.size())));
    const std::uint64_t pick = mix_bits(bits);
    const char byte = round % 2 == 0 ? kSpecial[pick % kSpecial.size()]
                                     : static_cast<char>(pick);
    if (round % 3 == 0)
      mutated.insert(at, 1, byte);
    else
      mutated[at] = byte;
    expect_an_answer(mutated);
  }
}

TEST(PolicyHostile, EveryShortRunOfSpecialCharactersEndsInAnAnswer) {
  constexpr std::string_view kAlphabet = "a1:- ,[]{}&*!|>'\"%?#~\n\t";
  for (std::uint64_t round = 0; round < 5000; ++round) {
    std::string text = round % 2 == 0 ? "version: 1\n" : "";
    std::uint64_t bits = derive_seed(7, round);
    for (int i = 0; i < 14; ++i) {
      text += kAlphabet[bits % kAlphabet.size()];
      bits = mix_bits(bits);
    }
    expect_an_answer(text);
  }
}

class PolicyFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ("policy_files_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, std::string_view text) {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  std::filesystem::path folder_;
};

TEST_F(PolicyFiles, AGoodFileIsReadUnderItsName) {
  const std::string path = write("good.yaml", "version: 1\nseed: 9\n");
  const PolicyParse result = load_policy(path, kTestChecks);
  ASSERT_TRUE(result.policy.has_value());
  EXPECT_EQ(result.policy->seed, 9u);
  EXPECT_EQ(result.policy->name, path);
}

TEST_F(PolicyFiles, DiagnosticsNameTheFileAsGiven) {
  const std::string path = write("bad.yaml", "version: 1\nsed: 9\n");
  EXPECT_THAT(format_diagnostics(load_policy(path, kTestChecks).diagnostics),
              HasSubstr(path + ":2:1: error: unknown key 'sed'"));
}

TEST_F(PolicyFiles, ADirectoryIsNoPolicy) {
  EXPECT_EQ(
      format_diagnostics(
          load_policy(folder_.string(), kTestChecks).diagnostics),
      folder_.string() + ": error: this is a directory; give a policy file\n");
}

TEST_F(PolicyFiles, AMissingFileSaysSo) {
  const std::string path = (folder_ / "none.yaml").string();
  const PolicyParse missing = load_policy(path, kTestChecks);
  EXPECT_THAT(
      errors_of(missing),
      ElementsAre("0:0 cannot open the policy: No such file or directory"));
  EXPECT_EQ(
      format_diagnostics(missing.diagnostics),
      path + ": error: cannot open the policy: No such file or directory\n");
}

TEST_F(PolicyFiles, AnEmptyFileSaysHowToBegin) {
  EXPECT_THAT(errors_of(load_policy(write("empty.yaml", ""), kTestChecks)),
              ElementsAre("1:1 the policy is empty; begin with 'version: 1'"));
}

TEST_F(PolicyFiles, AnEndlessFileIsNotReadToItsEnd) {
  EXPECT_THAT(errors_of(load_policy("/dev/zero", kTestChecks)),
              ElementsAre(HasSubstr("larger than 4 MiB")));
}

// Opens for every user, root too, and cannot be read at its beginning.
TEST_F(PolicyFiles, AFileThatCannotBeReadSaysSo) {
  EXPECT_THAT(errors_of(load_policy("/proc/self/mem", kTestChecks)),
              ElementsAre(HasSubstr("cannot read the policy")));
}

}  // namespace
}  // namespace attnguard
