// What a good policy means.
#include "guard/policy/policy_yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/policy/policy_testing.h"

namespace attnguard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Policy good(std::string_view text) {
  PolicyParse result = parse(text);
  EXPECT_EQ(format_diagnostics(result.diagnostics), "");
  return result.policy.value_or(Policy{});
}

Tolerance number(double value) { return {Tolerance::Kind::kNumber, value}; }

constexpr Tolerance kExact = {Tolerance::Kind::kExact, 0};

TEST(PolicyYaml, AVersionAloneIsThePolicyOfDefaults) {
  const Policy policy = good("version: 1\n");
  EXPECT_EQ(policy.name, "policy.yaml");
  EXPECT_EQ(policy.seed, 1u);
  const Settings settings = policy.resolve("any");
  EXPECT_EQ(settings.coverage, Coverage::kEdges);
  EXPECT_EQ(settings.check("row-sum").severity, Severity::kError);
  EXPECT_EQ(settings.check("row-sum").tolerance(Dtype::kFp16), Tolerance{});
}

TEST(PolicyYaml, WithoutProblemsTheBuiltInOnesAreKept) {
  const Policy built_in = parse_built_in().policy.value_or(Policy{});
  const Policy tuned = good(
      "version: 1\n"
      "tolerances:\n"
      "  reference: {fp16: 2.0e-3}\n");
  EXPECT_EQ(problem_lines(tuned), problem_lines(built_in));
  EXPECT_EQ(tuned.problems[0].location.file, "built-in");
}

TEST(PolicyYaml, ReadsEveryUnsignedSeed) {
  EXPECT_EQ(good("version: 1\nseed: 0\n").seed, 0u);
  EXPECT_EQ(good("version: 1\nseed: 18446744073709551615\n").seed,
            18446744073709551615u);
}

TEST(PolicyYaml, ReadsSeveritiesAndCoverage) {
  const Settings settings = good(
                                "version: 1\n"
                                "coverage: full\n"
                                "checks:\n"
                                "  repeatable: warning\n"
                                "  memory: off\n")
                                .resolve("any");
  EXPECT_EQ(settings.coverage, Coverage::kFull);
  EXPECT_EQ(settings.check("repeatable").severity, Severity::kWarning);
  EXPECT_EQ(settings.check("memory").severity, Severity::kOff);
  EXPECT_EQ(settings.check("finite").severity, Severity::kError);
}

TEST(PolicyYaml, ReadsTolerancesForAllDtypesOrByDtype) {
  const Settings settings = good(
                                "version: 1\n"
                                "tolerances:\n"
                                "  row-sum: exact\n"
                                "  reference: {fp16: 2.0e-3, fp32: auto}\n"
                                "  visibility: 0\n")
                                .resolve("any");
  EXPECT_EQ(settings.check("row-sum").tolerance(Dtype::kFp64), kExact);
  EXPECT_EQ(settings.check("row-sum").tolerance(Dtype::kBf16), kExact);
  const CheckSettings& reference = settings.check("reference");
  EXPECT_EQ(reference.tolerance(Dtype::kFp16), number(2e-3));
  EXPECT_EQ(reference.tolerance(Dtype::kFp32), Tolerance{});
  EXPECT_EQ(reference.tolerances.count(Dtype::kBf16), 0u);
  EXPECT_EQ(settings.check("visibility").tolerance(Dtype::kFp32), number(0));
}

TEST(PolicyYaml, AStarIsEveryCheckAndACheckOfItsOwnWins) {
  const Policy policy = good(
      "version: 1\n"
      "checks:\n"
      "  row-sum: off\n"
      "  \"*\": warning\n"
      "tolerances:\n"
      "  row-sum: {fp16: 0.5}\n"
      "  \"*\": exact\n");
  ASSERT_THAT(policy.patches, SizeIs(1));
  EXPECT_THAT(policy.patches[0].severities, SizeIs(kTestChecks.size()));
  const Settings settings = policy.resolve("any");
  EXPECT_EQ(settings.check("row-sum").severity, Severity::kOff);
  EXPECT_EQ(settings.check("memory").severity, Severity::kWarning);
  EXPECT_EQ(settings.check("row-sum").tolerance(Dtype::kFp16), number(0.5));
  EXPECT_EQ(settings.check("row-sum").tolerance(Dtype::kFp32), kExact);
}

TEST(PolicyYaml, EngineOverridesApplyByGlobAndLaterOnesWin) {
  const Policy policy = good(
      "version: 1\n"
      "coverage: edges\n"
      "engines:\n"
      "  \"ggml:*\":\n"
      "    coverage: sampled\n"
      "    tolerances: {row-sum: 1.0e-3}\n"
      "  ggml:cpu:\n"
      "    coverage: full\n"
      "    checks: {repeatable: off}\n");
  EXPECT_EQ(policy.resolve("onnx").coverage, Coverage::kEdges);
  EXPECT_EQ(policy.resolve("ggml:cuda").coverage, Coverage::kSampled);
  const Settings cpu = policy.resolve("ggml:cpu");
  EXPECT_EQ(cpu.coverage, Coverage::kFull);
  EXPECT_EQ(cpu.check("repeatable").severity, Severity::kOff);
  EXPECT_EQ(cpu.check("row-sum").tolerance(Dtype::kFp32), number(1e-3));
  ASSERT_THAT(policy.patches, SizeIs(3));
  EXPECT_EQ(policy.patches[2].engine_glob, "ggml:cpu");
  EXPECT_EQ(policy.patches[2].location, (SourceLocation{"policy.yaml", 7, 3}));
}

TEST(PolicyYaml, ListsExpandInTheOrderOfTheFieldTable) {
  // Written in another order on purpose: dtype varies faster than batch.
  const Policy policy = good(
      "version: 1\n"
      "problems:\n"
      "  - dtype: [fp32, bf16]\n"
      "    seq_len: 4\n"
      "    batch: [1, 2]\n");
  EXPECT_THAT(
      problem_lines(policy),
      ElementsAre(
          Problem::parse("batch=1 seq_len=4 dtype=fp32").value().text(),
          Problem::parse("batch=1 seq_len=4 dtype=bf16").value().text(),
          Problem::parse("batch=2 seq_len=4 dtype=fp32").value().text(),
          Problem::parse("batch=2 seq_len=4 dtype=bf16").value().text()));
  EXPECT_EQ(policy.problems[3].location, (SourceLocation{"policy.yaml", 3, 5}));
}

TEST(PolicyYaml, AListInAListIsOneValue) {
  const Policy policy = good(
      "version: 1\n"
      "problems:\n"
      "  - batch: 2\n"
      "    seq_len_q: [4, [4, 0]]\n"
      "    seq_len_kv: 5, 3\n"
      "    query_strides: [[256, 256, 64, 1]]\n");
  ASSERT_THAT(policy.problems, SizeIs(2));
  EXPECT_THAT(policy.problems[0].problem.seq_len_q, ElementsAre(4));
  EXPECT_THAT(policy.problems[1].problem.seq_len_q, ElementsAre(4, 0));
  EXPECT_THAT(policy.problems[1].problem.seq_len_kv, ElementsAre(5, 3));
  EXPECT_EQ(policy.problems[0].problem.query_strides,
            (Shape4{256, 256, 64, 1}));
}

TEST(PolicyYaml, KvHeadsDefaultToHeads) {
  const Policy policy = good(
      "version: 1\n"
      "problems:\n"
      "  - num_heads: [3, 4]\n"
      "  - {num_heads: 4, num_kv_heads: 2}\n");
  ASSERT_THAT(policy.problems, SizeIs(3));
  EXPECT_EQ(policy.problems[0].problem.num_kv_heads, 3);
  EXPECT_EQ(policy.problems[1].problem.num_kv_heads, 4);
  EXPECT_EQ(policy.problems[2].problem.num_kv_heads, 2);
}

TEST(PolicyYaml, EveryProblemFieldCanBeWritten) {
  // A value for each that is legal beside the others.
  const std::map<std::string_view, std::string> values = {
      {"dtype", "fp16"},
      {"out_dtype", "fp32"},
      {"softmax_scale", "0.25"},
      {"mask", "causal_top_left"},
      {"layout", "bshd"},
      {"empty_row", "mean"},
      {"mask_form", "additive"},
      {"value_in_key", "false"},
      {"packed", "true"},
      {"packed_padding", "0"},
      {"shared_prefix", "0"},
      {"query_strides", "[[64, 64, 64, 1]]"},
      {"key_strides", "[[64, 64, 64, 1]]"},
      {"value_strides", "[[64, 64, 64, 1]]"},
      {"output_strides", "[[64, 64, 64, 1]]"}};
  for (const ProblemField& field : all_problem_fields()) {
    const auto found = values.find(field.name);
    const std::string value = found == values.end() ? "1" : found->second;
    const bool strides = field.name.ends_with("_strides");
    EXPECT_THAT(errors("version: 1\nproblems:\n  - " + std::string(field.name) +
                       ": " + value + (strides ? "\n    seq_len: 1\n" : "\n")),
                IsEmpty())
        << field.name;
  }
}

TEST(PolicyYaml, AShorthandsNameBeginsTheNamesOfTheFieldsItSets) {
  for (const ProblemField& shorthand : all_problem_fields()) {
    if (shorthand.get != nullptr) continue;
    Problem problem;
    ASSERT_TRUE(shorthand.set(problem, "7919").ok()) << shorthand.name;
    for (const ProblemField& field : all_problem_fields()) {
      if (field.get == nullptr) continue;
      const bool is_set = field.get(problem) != field.get(Problem{});
      EXPECT_EQ(is_set,
                field.name.starts_with(std::string(shorthand.name) + "_"))
          << shorthand.name << " and " << field.name;
    }
  }
}

TEST(PolicyYaml, AMaskWithACommaStandsInQuotesOrAlone) {
  const Policy policy = good(
      "version: 1\n"
      "problems:\n"
      "  - mask: sliding_window(left=4,right=0)\n"
      "  - mask: [full, \"sliding_window(left=4,right=0)\"]\n"
      "  - mask:\n"
      "      - sliding_window(left=4,right=0)\n");
  ASSERT_THAT(policy.problems, SizeIs(4));
  for (std::size_t i : {0, 2, 3})
    EXPECT_TRUE(policy.problems[i].problem.mask.has("sliding_window"));
}

TEST(PolicyYaml, IgnoresAByteOrderMarkAndWindowsLineEnds) {
  EXPECT_EQ(good("\xef\xbb\xbfversion: 1\r\nseed: 7\r\n").seed, 7u);
  EXPECT_EQ(good("version: 1\rseed: 7\r").seed, 7u);
}

TEST(PolicyYaml, AllowsDocumentMarksAroundTheOneDocument) {
  EXPECT_EQ(good("%YAML 1.2\n---\nversion: 1\nseed: 7\n...\n").seed, 7u);
}

}  // namespace
}  // namespace attnguard
