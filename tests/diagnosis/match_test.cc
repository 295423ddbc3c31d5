// What a failing engine is said to behave like.
#include "guard/diagnosis/match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <numeric>

#include "guard/base/rng.h"
#include "guard/defect/defect.h"
#include "guard/diagnosis/conventions.h"
#include "tests/support/engines.h"
#include "tests/support/sanitizer.h"

namespace attnguard {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kCausalBottomRight =
    "num_heads=4 num_kv_heads=2 seq_len=40 head_dim=32 "
    "mask=causal_bottom_right";

std::optional<Diagnosis> diagnosis_of(const Engine& engine,
                                      const std::string& line,
                                      std::uint64_t seed = 1) {
  const Problem problem = problem_of(line);
  return diagnose(engine, problem, problem, seed);
}

// The defect as an engine of its own.
Engine defective(const std::string& id) {
  const Defect* defect = find_defect(id);
  EXPECT_NE(defect, nullptr) << id;
  return defect != nullptr ? defect_engine(*defect) : Engine{};
}

// A correct fp32 engine that computes another problem of the same shapes.
template <typename Edit>
Engine misreading(Edit edit) {
  Engine engine = builtin("tiled");
  engine.name = "test:misreading";
  engine.run = [tiled = engine.run, edit](const AttentionCall& call) {
    Problem problem = *call.problem;
    edit(problem);
    AttentionCall other = call;
    other.problem = &problem;
    return tiled(other);
  };
  return engine;
}

Engine with_mask_instead(const std::string& from, const std::string& to) {
  return misreading([from, to](Problem& problem) {
    if (problem.mask.text() == from) problem.mask = Mask::parse(to).value();
  });
}

std::string diagnosis_text(const std::optional<Diagnosis>& diagnosis) {
  if (!diagnosis) return "none";
  std::string text;
  for (const std::string& line : diagnosis_lines(*diagnosis))
    text += line + "\n";
  return text;
}

void expect_named(const std::optional<Diagnosis>& diagnosis,
                  const std::string& id) {
  ASSERT_TRUE(diagnosis.has_value()) << id;
  EXPECT_THAT(diagnosis->equally_good, ElementsAre(id))
      << diagnosis_text(diagnosis);
  ASSERT_FALSE(diagnosis->explanations.empty());
  const Explanation& best = diagnosis->explanations.front();
  EXPECT_EQ(best.id, id);
  EXPECT_TRUE(best.reproduces_all);
  EXPECT_EQ(best.calls_reproduced, diagnosis->calls);
  EXPECT_GE(diagnosis->telling_calls, 1);
  EXPECT_LE(diagnosis->telling_calls, diagnosis->calls);
}

// Kernels of their own code and precision, not the defects' fp64.
class KnownBadEngine
    : public testing::TestWithParam<std::pair<std::string, std::string>> {};

TEST_P(KnownBadEngine, IsNamedInEveryDtype) {
  const auto& [name, id] = GetParam();
  for (const char* dtype : {"fp32", "fp16", "bf16", "fp64"})
    for (std::uint64_t seed : {1, 2, 3}) {
      SCOPED_TRACE(std::string(dtype) + " seed " + std::to_string(seed));
      expect_named(
          diagnosis_of(builtin(name),
                       kCausalBottomRight + std::string(" dtype=") + dtype,
                       seed),
          id);
    }
}

INSTANTIATE_TEST_SUITE_P(
    Builtin, KnownBadEngine,
    testing::Values(std::pair{"wrong_axis", "softmax-over-queries"},
                    std::pair{"no_mask", "no-mask"},
                    std::pair{"causal_off_by_one", "causal-off-by-one"},
                    std::pair{"mask_after_softmax", "mask-after-softmax"},
                    std::pair{"drops_last_key", "last-key-dropped"},
                    std::pair{"drops_last_tile", "partial-last-tile-dropped"},
                    std::pair{"wrong_kv_head", "kv-head-by-modulo"},
                    std::pair{"wrong_scale", "scale-missing"}),
    [](const auto& tested) { return tested.param.first; });

// The output of an engine, off by what fp32 sums in another order are.
Engine with_noise(Engine engine) {
  engine.run = [exact = engine.run](const AttentionCall& call) {
    const Status status = exact(call);
    const Problem& p = *call.problem;
    std::vector<double> row(static_cast<std::size_t>(p.head_dim_v));
    for (std::int64_t b = 0; b < p.batch; ++b)
      for (std::int64_t h = 0; h < p.num_heads; ++h)
        for (std::int64_t i = 0; i < p.len_q(b); ++i) {
          call.output.load_row(b, h, i, 0, p.head_dim_v, row.data());
          std::uint64_t bits =
              derive_seed(static_cast<std::uint64_t>(b * 64 + h),
                          static_cast<std::uint64_t>(i));
          for (double& x : row) {
            bits = mix_bits(bits);
            x *= 1 + 0x1p-23 * near_normal(bits);
          }
          call.output.store_row(b, h, i, 0, p.head_dim_v, row.data());
        }
    return status;
  };
  return engine;
}

TEST(Diagnosis, NamesDefectsThatRoundInTheirOwnWay) {
  int named = 0, tried = 0;
  for (const Defect* defect : all_defects()) {
    if (defect->legal()) continue;
    ++tried;
    const Problem problem = problem_of(std::string(defect->shows_on[0]));
    if (problem.max_len_kv() > 512) continue;  // Takes long.
    const auto diagnosis =
        diagnose(with_noise(defect_engine(*defect)), problem, problem, 1);
    const bool right = diagnosis && !diagnosis->equally_good.empty() &&
                       diagnosis->equally_good.front() == defect->id;
    named += right;
    EXPECT_TRUE(right) << defect->id << ": " << diagnosis_text(diagnosis);
  }
  EXPECT_GT(named, 9 * tried / 10);
}

TEST(Diagnosis, SaysThatAnEngineFollowsAnotherConvention) {
  const auto diagnosis = diagnosis_of(
      with_mask_instead("causal_bottom_right", "causal_top_left"),
      "seq_len_q=8 seq_len_kv=24 head_dim=16 mask=causal_bottom_right");
  ASSERT_TRUE(diagnosis.has_value());
  const Explanation& best = diagnosis->explanations.front();
  EXPECT_EQ(best.convention,
            "consistent with causal_top_left; the policy says "
            "causal_bottom_right");
  EXPECT_EQ(diagnosis->explanations.size(), 1u) << diagnosis_text(diagnosis);
}

TEST(Diagnosis, GivesAConventionAndADefectThatAreTheSameAsOne) {
  const auto diagnosis = diagnosis_of(
      defective("bottom-right-for-top-left"),
      "seq_len_q=8 seq_len_kv=24 head_dim=16 mask=causal_top_left");
  expect_named(diagnosis, "bottom-right-for-top-left");
  EXPECT_EQ(diagnosis->explanations.size(), 1u);
  EXPECT_EQ(diagnosis->explanations.front().convention,
            "consistent with causal_bottom_right; the policy says "
            "causal_top_left");
}

TEST(Diagnosis, NamesAConventionThatNoDefectStandsFor) {
  const auto width = diagnosis_of(
      with_mask_instead("sliding_window_two_sided(width=6)",
                        "window_symmetric(width=6)"),
      "seq_len=24 head_dim=16 mask=sliding_window_two_sided(width=6)");
  ASSERT_TRUE(width.has_value());
  ASSERT_FALSE(width->explanations.empty());
  EXPECT_EQ(width->explanations.front().id, "");
  EXPECT_TRUE(width->explanations.front().is_convention());
  EXPECT_THAT(diagnosis_lines(*width).front(),
              HasSubstr("this engine is consistent with "
                        "window_symmetric(width=6); the policy says "));
  EXPECT_THAT(width->equally_good, IsEmpty());
}

TEST(Diagnosis, AdmitsThatNothingKnownExplainsAPlantedFault) {
  const auto diagnosis =
      diagnosis_of(planted({0, 0, 9, 20}), kCausalBottomRight);
  ASSERT_TRUE(diagnosis.has_value());
  EXPECT_GE(diagnosis->telling_calls, 1);
  EXPECT_THAT(diagnosis->equally_good, IsEmpty());
  for (const Explanation& near : diagnosis->explanations) {
    EXPECT_FALSE(near.reproduces_all);
    EXPECT_LT(near.calls_reproduced, diagnosis->calls);
  }
  EXPECT_LE(diagnosis->explanations.size(), 3u);
  EXPECT_EQ(diagnosis_name(*diagnosis), "nothing known");
}

TEST(Diagnosis, CountsWhatANearMissReproduces) {
  // Wrong on large scores only, beside a mask that is ignored: most calls are
  // those of an engine without a mask.
  Engine engine = defective("no-mask");
  engine.run = [no_mask = engine.run](const AttentionCall& call) {
    const Status status = no_mask(call);
    std::vector<double> row(static_cast<std::size_t>(call.problem->head_dim_v));
    call.value.load_row(0, 0, 0, 0, call.problem->head_dim_v, row.data());
    const bool is_census = std::all_of(
        row.begin(), row.end(), [](double v) { return std::abs(v) == 1; });
    if (is_census) call.output.store_row(0, 0, 0, 0, 1, row.data());
    return status;
  };
  const auto diagnosis = diagnosis_of(engine, kCausalBottomRight);
  ASSERT_TRUE(diagnosis.has_value());
  ASSERT_FALSE(diagnosis->explanations.empty()) << diagnosis_text(diagnosis);
  const Explanation& best = diagnosis->explanations.front();
  EXPECT_EQ(best.id, "no-mask");
  EXPECT_GT(best.calls_reproduced, 0);
  EXPECT_LT(best.calls_reproduced, diagnosis->calls);
  EXPECT_THAT(diagnosis_text(diagnosis),
              HasSubstr("nothing known reproduces all " +
                        std::to_string(diagnosis->calls) +
                        " probe calls; closest: no-mask (" +
                        std::to_string(best.calls_reproduced) + " of "));
}

TEST(Diagnosis, HasNothingToSayOfACorrectEngine) {
  for (const char* name : {"reference", "tiled", "textbook", "overruns"})
    for (const char* dtype : {"fp32", "bf16"}) {
      if (kUnderAddressSanitizer && dtype == std::string_view("bf16")) continue;
      EXPECT_FALSE(diagnosis_of(
          builtin(name), kCausalBottomRight + std::string(" dtype=") + dtype))
          << name << " " << dtype;
    }
  for (const Defect* defect : all_defects())
    if (defect->legal()) {
      EXPECT_FALSE(diagnosis_of(defect_engine(*defect), kCausalBottomRight))
          << defect->id << ": "
          << diagnosis_text(
                 diagnosis_of(defect_engine(*defect), kCausalBottomRight));
    }
}

TEST(Diagnosis, HasNothingToSayOfAnEngineThatFails) {
  EXPECT_FALSE(diagnosis_of(builtin("throws"), kCausalBottomRight));
}

TEST(Diagnosis, NamesTheProblemThatWouldDecide) {
  Engine engine = defective("no-mask");
  engine.capabilities.unsupported = [](const Problem& problem) {
    return problem.max_len_kv() <= 64 && problem.num_heads == 1 ? ""
                                                                : "too large";
  };
  const auto diagnosis =
      diagnosis_of(engine, "seq_len=24 head_dim=16 mask=causal_bottom_right");
  ASSERT_TRUE(diagnosis.has_value());
  EXPECT_THAT(diagnosis->equally_good, Contains("no-mask"));
  EXPECT_THAT(diagnosis->equally_good, Contains("short-sequence-unmasked"));
  EXPECT_GT(diagnosis->explanations.size(), 1u);
  EXPECT_THAT(diagnosis->probe_needed,
              HasSubstr("to tell no-mask from short-sequence-unmasked"));
  const std::string& text = diagnosis->probe_needed;
  const std::size_t begin = text.find('\'') + 1;
  const Problem decisive =
      problem_of(text.substr(begin, text.find('\'', begin) - begin));
  EXPECT_FALSE(unsupported_reason(engine, decisive).empty());
}

TEST(Diagnosis, RunsTheProblemThatDecides) {
  const auto diagnosis =
      diagnosis_of(defective("short-sequence-unmasked"),
                   "seq_len=24 head_dim=16 mask=causal_bottom_right");
  expect_named(diagnosis, "short-sequence-unmasked");
  EXPECT_GT(diagnosis->problems.size(), 1u);
  EXPECT_THAT(diagnosis->explanations.front().told_apart,
              HasSubstr("told from no-mask by '"));
  EXPECT_THAT(diagnosis->probe_needed, IsEmpty());
}

TEST(Diagnosis, MustExplainTheOriginalProblemToo) {
  // As the smallest case it drops the last key; on longer ones it also has
  // the wrong KV heads.
  const Engine drops = defective("last-key-dropped");
  const Engine modulo = defective("kv-head-by-modulo");
  Engine engine = drops;
  engine.run = [drops, modulo](const AttentionCall& call) {
    return call.problem->max_len_kv() < 20 ? drops.run(call) : modulo.run(call);
  };
  const Problem smallest = problem_of("seq_len=5 head_dim=16");
  const Problem original =
      problem_of("num_heads=6 num_kv_heads=2 seq_len=40 head_dim=16");
  const auto diagnosis = diagnose(engine, smallest, original, 1);
  ASSERT_TRUE(diagnosis.has_value());
  EXPECT_EQ(diagnosis->problems.size(), 2u);
  EXPECT_THAT(diagnosis->equally_good, IsEmpty()) << diagnosis_text(diagnosis);
}

TEST(Diagnosis, UsesTheOriginalWhereTheSmallestShowsNothing) {
  const Defect& defect = *find_defect("position-wraps-at-256");
  const Problem original = problem_of(std::string(defect.shows_on[0]));
  const Problem smallest =
      problem_of("seq_len=8 head_dim=16 mask=causal_bottom_right");
  const auto diagnosis = diagnose(defect_engine(defect), smallest, original, 1);
  expect_named(diagnosis, "position-wraps-at-256");
  EXPECT_EQ(diagnosis->problems.front(), original.text());
}

TEST(Diagnosis, TakesNanForNanAlone) {
  const std::string line(find_defect("empty-tile-is-nan")->shows_on[0]);
  expect_named(diagnosis_of(defective("empty-tile-is-nan"), line),
               "empty-tile-is-nan");
  // The same rows as numbers are not the same.
  Engine engine = defective("empty-tile-is-nan");
  engine.run = [nan = engine.run](const AttentionCall& call) {
    const Status status = nan(call);
    const Problem& p = *call.problem;
    std::vector<double> row(static_cast<std::size_t>(p.head_dim_v));
    for (std::int64_t i = 0; i < p.len_q(0); ++i) {
      call.output.load_row(0, 0, i, 0, p.head_dim_v, row.data());
      if (std::isnan(row[0]))
        call.output.store_row(0, 0, i, 0, p.head_dim_v,
                              std::vector<double>(row.size(), 0.0).data());
    }
    return status;
  };
  const auto zeros = diagnosis_of(engine, line);
  ASSERT_TRUE(zeros.has_value());
  EXPECT_THAT(zeros->equally_good, IsEmpty()) << diagnosis_text(zeros);
}

TEST(Diagnosis, DoesNotDependOnTheNumberOfThreads) {
  const int before = omp_get_max_threads();
  for (const char* id : {"softmax-over-queries", "last-key-dropped",
                         "key-scale-per-block", "scores-in-half"}) {
    const std::string line(find_defect(id)->shows_on[0]);
    omp_set_num_threads(1);
    const std::string one = diagnosis_text(diagnosis_of(defective(id), line));
    omp_set_num_threads(4);
    const std::string four = diagnosis_text(diagnosis_of(defective(id), line));
    EXPECT_EQ(one, four);
    EXPECT_THAT(one, HasSubstr(id));
  }
  omp_set_num_threads(before);
}

TEST(Diagnosis, IsMadeByThePipelineAndCanBeOff) {
  const Problem problem = problem_of(kCausalBottomRight);
  RunOptions options;
  const ProblemResult with =
      verify_problem(builtin("wrong_axis"), problem, Settings{}, options);
  expect_named(with.diagnosis, "softmax-over-queries");
  options.diagnose = false;
  EXPECT_FALSE(
      verify_problem(builtin("wrong_axis"), problem, Settings{}, options)
          .diagnosis);
  EXPECT_FALSE(
      verify_problem(builtin("tiled"), problem, Settings{}, {}).diagnosis);
}

TEST(Diagnosis, IsMadeForSomeOfManyProblemsThatFailAlike) {
  Policy policy;
  for (int length = 20; length < 40; ++length)
    policy.problems.push_back(
        {problem_of("seq_len=" + std::to_string(length) +
                    " head_dim=16 mask=causal_bottom_right"),
         {}});
  const RunResult run = verify(builtin("no_mask"), policy);
  std::size_t diagnosed = 0;
  for (const ProblemResult& problem : run.problems)
    diagnosed += problem.diagnosis.has_value();
  EXPECT_GE(diagnosed, 8u);
  EXPECT_LT(diagnosed, run.problems.size());
  EXPECT_TRUE(run.problems.front().diagnosis.has_value());
}

}  // namespace
}  // namespace attnguard
