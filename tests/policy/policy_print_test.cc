// print_policy and parse_policy are each other's inverse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/policy/policy_testing.h"

namespace attnguard {
namespace {

using ::testing::HasSubstr;

// Everything but names and places.
void expect_same(const Policy& a, const Policy& b) {
  EXPECT_EQ(a.seed, b.seed);
  ASSERT_EQ(a.patches.size(), b.patches.size());
  for (std::size_t i = 0; i < a.patches.size(); ++i) {
    EXPECT_EQ(a.patches[i].engine_glob, b.patches[i].engine_glob);
    EXPECT_EQ(a.patches[i].coverage, b.patches[i].coverage);
    EXPECT_EQ(a.patches[i].severities, b.patches[i].severities);
    EXPECT_EQ(a.patches[i].tolerances, b.patches[i].tolerances);
  }
  EXPECT_EQ(problem_lines(a), problem_lines(b));
  ASSERT_EQ(a.problems.size(), b.problems.size());
  for (std::size_t i = 0; i < a.problems.size(); ++i)
    EXPECT_EQ(a.problems[i].problem, b.problems[i].problem);
}

Policy reparsed(const Policy& policy) {
  PolicyParse again =
      parse_policy(print_policy(policy), "policy.yaml", check_ids());
  EXPECT_EQ(format_diagnostics(again.diagnostics), "") << print_policy(policy);
  return again.policy.value_or(Policy{});
}

void expect_round_trip(std::string_view text) {
  const PolicyParse first = parse_policy(text, "policy.yaml", check_ids());
  ASSERT_TRUE(first.policy.has_value())
      << format_diagnostics(first.diagnostics);
  const Policy again = reparsed(*first.policy);
  expect_same(again, *first.policy);
  EXPECT_EQ(print_policy(again), print_policy(*first.policy));
}

TEST(PolicyPrint, TheBuiltInPolicyRoundTrips) {
  expect_round_trip(default_policy_text());
}

TEST(PolicyPrint, AVersionAloneRoundTrips) {
  expect_round_trip("version: 1\n");
}

TEST(PolicyPrint, SettingsRoundTrip) {
  expect_round_trip(
      "version: 1\n"
      "seed: 18446744073709551615\n"
      "coverage: full\n"
      "checks: {\"*\": warning, finite: off}\n"
      "tolerances:\n"
      "  row-sum: {fp16: 0.1, fp32: 1.0000000000000002e-7, bf16: exact}\n"
      "  reference: 1e-300\n"
      "  memory: exact\n"
      "problems: [{batch: 1}]\n"
      "engines:\n"
      "  \"*\": {coverage: sampled}\n"
      "  'a \"quoted\" \\ name: {x}': {checks: {memory: off}}\n"
      "  \"\\e[31m\\u00e4\": {}\n");
}

TEST(PolicyPrint, EveryKindOfFieldRoundTrips) {
  expect_round_trip(
      "version: 1\n"
      "problems:\n"
      "  - batch: 2\n"
      "    num_heads: [2, 4]\n"
      "    seq_len_q: [4, [4, 0], [0, 4]]\n"
      "    seq_len_kv: [[5, 3]]\n"
      "    head_dim_qk: [40, 64]\n"
      "    head_dim_v: 33\n"
      "    dtype: [fp64, bf16]\n"
      "    out_dtype: [fp32, fp16]\n"
      "    softmax_scale: [0.1, 1]\n"
      "    mask: [full, \"causal_top_left+sliding_window(left=4,right=-1)\"]\n"
      "    layout: [bhsd, sbhd]\n"
      "  - {seq_len: [4, 4, 5], mask: \"prefix_lm(prefix=2)\"}\n"
      "  - {seq_len: 4, query_strides: [[256, 256, 64, 1], [512, 512, 64, "
      "1]]}\n"
      "  - {seq_len: 4}\n"
      "  - {seq_len: 3, out_dtype: fp16}\n"
      "  - {seq_len: 3}\n");
}

TEST(PolicyPrint, ProblemsAreGroupedBackIntoProducts) {
  const PolicyParse result = parse(
      "version: 1\n"
      "problems:\n"
      "  - batch: [1, 2]\n"
      "    num_heads: 2\n"
      "    seq_len_q: 1\n"
      "    seq_len_kv: [7, 8, 9]\n"
      "    head_dim: 64\n"
      "    mask: [full, \"sliding_window(left=3,right=0)\"]\n");
  ASSERT_TRUE(result.policy.has_value());
  EXPECT_EQ(print_policy(*result.policy),
            "version: 1\n"
            "seed: 1\n"
            "problems:\n"
            "  - batch: [1, 2]\n"
            "    num_heads: 2\n"
            "    num_kv_heads: 2\n"
            "    seq_len_q: 1\n"
            "    seq_len_kv: [7, 8, 9]\n"
            "    head_dim_qk: 64\n"
            "    head_dim_v: 64\n"
            "    dtype: fp32\n"
            "    mask: [full, \"sliding_window(left=3,right=0)\"]\n"
            "engines: {}\n");
}

TEST(PolicyPrint, PatchesOfOneGlobBecomeOne) {
  Policy policy = *parse("version: 1\n").policy;
  policy.patches.push_back({.engine_glob = "a", .coverage = Coverage::kFull});
  policy.patches.push_back({.engine_glob = "b"});
  policy.patches.push_back(
      {.engine_glob = "a", .severities = {{"memory", Severity::kOff}}});
  const Settings settings = reparsed(policy).resolve("a");
  EXPECT_EQ(settings.coverage, Coverage::kFull);
  EXPECT_EQ(settings.check("memory").severity, Severity::kOff);
  EXPECT_THAT(print_policy(policy), HasSubstr("engines:\n  \"b\": {}\n"));
}

}  // namespace
}  // namespace attnguard
