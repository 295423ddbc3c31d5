// The built-in policy is wide, and cheap enough for every run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/policy/policy_testing.h"

namespace attnguard {
namespace {

const Policy& built_in() {
  static const PolicyParse kParse = parse_built_in();
  EXPECT_EQ(format_diagnostics(kParse.diagnostics), "");
  static const Policy kNone;
  return kParse.policy ? *kParse.policy : kNone;
}

bool has(const std::function<bool(const Problem&)>& wanted) {
  return std::any_of(
      built_in().problems.begin(), built_in().problems.end(),
      [&](const PolicyProblem& entry) { return wanted(entry.problem); });
}

bool one_length(const Problem& p, std::int64_t q, std::int64_t kv) {
  return p.seq_len_q == std::vector<std::int64_t>{q} &&
         p.seq_len_kv == std::vector<std::int64_t>{kv};
}

TEST(PolicyDefault, ParsesWithoutDiagnostics) {
  EXPECT_FALSE(built_in().problems.empty());
  EXPECT_TRUE(parse_built_in().diagnostics.empty());
}

TEST(PolicyDefault, SpellsOutWhatAPolicyWithoutSettingsMeans) {
  const PolicyParse version =
      parse_policy("version: 1\n", "policy.yaml", check_ids());
  ASSERT_TRUE(version.policy.has_value());
  for (const char* engine : {"any", "ggml:flash,threads=2"}) {
    const Settings written = built_in().resolve(engine);
    const Settings bare = version.policy->resolve(engine);
    EXPECT_EQ(written.seed, bare.seed);
    EXPECT_EQ(written.coverage, bare.coverage);
    for (std::string_view id : check_ids()) {
      const CheckSettings& a = written.check(std::string(id));
      const CheckSettings& b = bare.check(std::string(id));
      EXPECT_EQ(a.severity, b.severity) << id << " of " << engine;
      for (const DtypeInfo& info : all_dtypes())
        EXPECT_EQ(a.tolerance(info.dtype), b.tolerance(info.dtype));
    }
  }
}

TEST(PolicyDefault, WarnsOfNanInUnusedSlotsForGgmlAlone) {
  const std::string check = "unused-slots-nan";
  EXPECT_EQ(built_in().resolve("ggml:softmax").check(check).severity,
            Severity::kWarning);
  EXPECT_EQ(built_in().resolve("ggml:softmax").check("unused-slots").severity,
            Severity::kError);
  EXPECT_EQ(built_in().resolve("builtin:tiled").check(check).severity,
            Severity::kError);
}

// As with problems: a file's own list replaces the built-in one.
TEST(PolicyDefault, EnginesOfAFileReplaceItsOverrides) {
  const auto severity = [](std::string_view text) {
    const PolicyParse file = parse_policy(text, "policy.yaml", check_ids());
    EXPECT_EQ(format_diagnostics(file.diagnostics), "");
    return file.policy.value_or(Policy{})
        .resolve("ggml:flash")
        .check("unused-slots-nan")
        .severity;
  };
  EXPECT_EQ(severity("version: 1\nproblems: [{seq_len: 4}]\n"),
            Severity::kWarning);
  EXPECT_EQ(severity("version: 1\nengines: {}\n"), Severity::kError);
  EXPECT_EQ(severity("version: 1\n"
                     "engines:\n"
                     "  \"ggml:*\": {checks: {unused-slots-nan: off}}\n"),
            Severity::kOff);
}

TEST(PolicyDefault, IsCheapEnough) {
  EXPECT_GE(built_in().problems.size(), 150u);
  EXPECT_LE(built_in().problems.size(), 340u);
  double operations = 0;  // of one call of each problem
  for (const PolicyProblem& entry : built_in().problems) {
    const Problem& p = entry.problem;
    operations += 2.0 * static_cast<double>(p.batch * p.num_heads) *
                  static_cast<double>(p.max_len_q() * p.max_len_kv()) *
                  static_cast<double>(p.head_dim_qk + p.head_dim_v);
  }
  EXPECT_LT(operations, 15e9);
}

TEST(PolicyDefault, HoldsEachProblemOnce) {
  auto lines = problem_lines(built_in());
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(std::adjacent_find(lines.begin(), lines.end()), lines.end())
      << *std::adjacent_find(lines.begin(), lines.end());
}

TEST(PolicyDefault, CoversTheLengthsThatKernelsDispatchOn) {
  for (std::int64_t edge : {1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128,
                            129, 255, 256, 257, 1024, 2048, 4096})
    EXPECT_TRUE(has([&](const Problem& p) {
      return one_length(p, edge, edge);
    })) << edge;
  EXPECT_TRUE(has([](const Problem& p) { return one_length(p, 1, 1024); }));
  EXPECT_TRUE(has([](const Problem& p) {
    return p.max_len_q() > 1 && p.max_len_q() < p.max_len_kv();
  }));
  EXPECT_TRUE(
      has([](const Problem& p) { return p.max_len_q() > p.max_len_kv(); }));
  EXPECT_TRUE(has([](const Problem& p) { return p.seq_len_kv.size() == 3; }));
  EXPECT_TRUE(has([](const Problem& p) {
    return p.seq_len_kv == std::vector<std::int64_t>{5, 0};
  }));
}

TEST(PolicyDefault, CoversHeadsDimsAndBatches) {
  for (auto [heads, kv_heads] :
       {std::pair{6, 2}, std::pair{8, 2}, std::pair{12, 4}, std::pair{5, 1}})
    EXPECT_TRUE(has([h = heads, g = kv_heads](const Problem& p) {
      return p.num_heads == h && p.num_kv_heads == g;
    })) << heads
        << '/' << kv_heads;
  for (std::int64_t dim : {33, 40, 72, 80, 96, 128, 256})
    EXPECT_TRUE(has([&](const Problem& p) {
      return p.head_dim_qk == dim && p.head_dim_v == dim;
    })) << dim;
  EXPECT_TRUE(
      has([](const Problem& p) { return p.head_dim_qk > p.head_dim_v; }));
  EXPECT_TRUE(
      has([](const Problem& p) { return p.head_dim_qk < p.head_dim_v; }));
  for (std::int64_t batch : {1, 2, 3, 9})
    EXPECT_TRUE(has([&](const Problem& p) { return p.batch == batch; }));
}

TEST(PolicyDefault, CoversDtypesMasksAndLayouts) {
  for (const DtypeInfo& info : all_dtypes())
    EXPECT_TRUE(has([&](const Problem& p) { return p.dtype == info.dtype; }));
  EXPECT_TRUE(has([](const Problem& p) { return p.out_dtype.has_value(); }));
  for (const MaskKind* kind : all_mask_kinds())
    EXPECT_TRUE(has([&](const Problem& p) { return p.mask.has(kind->name); }))
        << kind->name;
  EXPECT_TRUE(has([](const Problem& p) {
    return p.mask.has("causal_top_left") &&
           p.mask.has("sliding_window_top_left");
  }));
  EXPECT_TRUE(has([](const Problem& p) {
    return p.mask.has("causal_bottom_right") && p.mask.has("sliding_window");
  }));
  for (Layout layout : {Layout::kBhsd, Layout::kBshd, Layout::kSbhd})
    EXPECT_TRUE(has([&](const Problem& p) { return p.layout == layout; }));
  EXPECT_TRUE(has([](const Problem& p) {
    return p.query_strides.has_value() && p.output_strides.has_value();
  }));
  EXPECT_TRUE(has([](const Problem& p) {
    return p.softmax_scale.has_value() && *p.softmax_scale != p.head_dim_qk;
  }));
}

// A problem whose every row is empty would prove nothing.
TEST(PolicyDefault, EveryProblemHasARowThatSeesAKey) {
  for (const PolicyProblem& entry : built_in().problems) {
    const Problem& p = entry.problem;
    KeyRanges keys;
    bool sees = false;
    for (std::int64_t b = 0; b < p.batch && !sees; ++b)
      for (std::int64_t q = 0; q < p.len_q(b) && !sees; ++q) {
        p.mask.allowed(p.row(b, q), keys);
        sees = keys.count() > 0;
      }
    EXPECT_TRUE(sees) << p.text();
  }
}

}  // namespace
}  // namespace attnguard
