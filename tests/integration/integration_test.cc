// adapters/INTEGRATION.md keeps its word: its examples are the files beside
// this one, which are compiled and run here, on a kernel that is right and on
// one that leaks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "guard/check/check.h"
#include "guard/policy/policy_yaml.h"
#include "tests/adapters/plugin/test_plugins.h"
#include "tests/support/text_file.h"

namespace attnguard {
// In place of the built-in policy, whose long problems take seconds.
const Policy& few_problems();
}  // namespace attnguard

// README's example has an engine of the same name in this program.
#define default_policy few_problems
#define my_engine engine_of_the_page
#include "tests/integration/googletest.cc"
#undef default_policy
#undef my_engine

namespace attnguard {

const Policy& few_problems() {
  static const Policy policy =
      *parse_policy(
           "version: 1\n"
           "problems:\n"
           "  - {batch: 2, num_heads: 4, num_kv_heads: 2, seq_len_q: [1, 9],\n"
           "     seq_len_kv: [33], head_dim: 32, mask: causal_bottom_right,\n"
           "     layout: [bhsd, sbhd]}\n"
           "  - {batch: 2, seq_len_q: 4, seq_len_kv: [[9, 5]], head_dim: 32,\n"
           "     dtype: [fp32, fp16], mask: causal_bottom_right}\n",
           "few", check_ids())
           .policy;
  return policy;
}

namespace {

using testing::HasSubstr;

// The kernel leaks while one of these lives.
class Leak {
 public:
  Leak() { setenv("MY_ATTENTION_LEAKS", "1", 1); }
  ~Leak() { unsetenv("MY_ATTENTION_LEAKS"); }
};

// What stands between ``` lines whose first names a language.
std::vector<std::string> programs_of(const std::string& page) {
  std::vector<std::string> programs;
  std::istringstream lines(page);
  bool inside = false, wanted = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      inside = !inside;
      wanted = inside && (line == "```c" || line == "```cpp");
      if (wanted) programs.emplace_back();
    } else if (wanted) {
      programs.back() += line + "\n";
    }
  }
  return programs;
}

TEST(Integration, ThePageShowsTheFilesThatAreCompiledHere) {
  std::vector<std::string> compiled;
  for (const char* name : {"callback.h", "plugin.c", "googletest.cc"}) {
    compiled.push_back(
        read_file(std::string(ATTNGUARD_TEST_DATA "/integration/") + name));
    EXPECT_LT(std::ranges::count(compiled.back(), '\n'), 30) << name;
  }
  EXPECT_EQ(
      programs_of(read_file(ATTNGUARD_TEST_DATA "/../adapters/INTEGRATION.md")),
      compiled);
}

// All but the fp16 problem are run.
void expect_right_and_wrong(const Engine& engine) {
  const RunResult right = verify(engine, few_problems());
  EXPECT_EQ(right.verdict, Verdict::kPass);
  EXPECT_EQ(std::ranges::count(right.problems, Verdict::kPass,
                               &ProblemResult::verdict),
            5);
  const Leak leak;
  EXPECT_EQ(verify(engine, few_problems()).verdict, Verdict::kViolation);
}

TEST(Integration, TheCallbackIsChecked) {
  expect_right_and_wrong(engine_of_the_page());
}

TEST(Integration, ThePluginIsChecked) {
  expect_right_and_wrong(plugin_engine("integration"));
}

TEST(Integration, ThePluginRefusesOtherMasks) {
  const Engine engine = plugin_engine("integration");
  for (const char* mask :
       {"full", "causal_top_left", "sliding_window(left=3,right=0)"}) {
    const Result<Problem> problem = Problem::parse(
        "seq_len_q=3 seq_len_kv=7 head_dim=16 mask=" + std::string(mask));
    ASSERT_TRUE(problem.ok());
    EXPECT_NE(unsupported_reason(engine, problem.value()), "") << mask;
  }
}

}  // namespace
}  // namespace attnguard
