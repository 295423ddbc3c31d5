// The oracles that the comparison compares, on cases worked out by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "bench/oracles/local_fault.h"
#include "bench/oracles/oracle.h"
#include "bench/oracles/rules.h"
#include "guard/engine/reference.h"
#include "tests/engine/test_tensors.h"
#include "tests/support/engines.h"

namespace attnguard {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The reference, its rows edited.
Engine edited_reference(
    std::function<void(const VariantRow&, std::span<double>)> edit) {
  AttentionVariant variant;
  variant.output = std::move(edit);
  return variant_engine("test:edited", "", std::move(variant));
}

Engine shifted_reference(double by) {
  return edited_reference([by](const VariantRow&, std::span<double> row) {
    for (double& x : row) x += by;
  });
}

Opinion opinion_of(const char* oracle, const Engine& engine,
                   const std::string& line) {
  References references;
  const Problem problem = problem_of(line);
  return find_oracle(oracle)->judge({engine, problem, 1, references}).opinion;
}

TEST(OracleRules, CountElementsThatAreNotClose) {
  // Limits are 0.5 + 0.25 * {4, 4, 0, 8} = {1.5, 1.5, 0.5, 2.5}.
  const std::vector<double> expected = {4, -4, 0, 8};
  const Closeness limit{0.25, 0.5};
  EXPECT_EQ(count_not_close(std::vector<double>{5.5, -5.5, 0.5, 5.5}, expected,
                            limit),
            0u);
  EXPECT_EQ(
      count_not_close(std::vector<double>{5.75, -4, 0.75, 8}, expected, limit),
      2u);
  EXPECT_EQ(
      count_not_close(std::vector<double>{4, -4, 0, kNan}, expected, limit),
      1u);
  EXPECT_EQ(count_not_close(std::vector<double>{kNan},
                            std::vector<double>{kNan}, limit),
            1u);
}

TEST(OracleRules, DivideTheSquaredErrorByTheSquaredReference) {
  // (1 + 4) / (9 + 16 + 0)
  EXPECT_DOUBLE_EQ(normalised_mean_square_error(std::vector<double>{4, 2, 0},
                                                std::vector<double>{3, 4, 0}),
                   0.2);
  EXPECT_EQ(normalised_mean_square_error(std::vector<double>{0},
                                         std::vector<double>{0}),
            0);
  EXPECT_TRUE(std::isinf(normalised_mean_square_error(std::vector<double>{1},
                                                      std::vector<double>{0})));
  EXPECT_TRUE(std::isnan(normalised_mean_square_error(std::vector<double>{kNan},
                                                      std::vector<double>{1})));
}

TEST(OracleRules, TakeTheLargestErrorAndNanForInfinite) {
  EXPECT_EQ(largest_error(std::vector<double>{1, -3, 2},
                          std::vector<double>{1.5, -1, 2}),
            2);
  EXPECT_TRUE(std::isinf(
      largest_error(std::vector<double>{1, kNan}, std::vector<double>{1, 1})));
}

TEST(Oracles, HaveAnIdAndARuleEach) {
  std::set<std::string_view> ids;
  for (const Oracle* oracle : all_oracles()) {
    EXPECT_TRUE(ids.insert(oracle->id).second) << oracle->id;
    EXPECT_FALSE(oracle->summary.empty());
    EXPECT_EQ(find_oracle(oracle->id), oracle);
  }
  EXPECT_EQ(find_oracle("no-such-oracle"), nullptr);
}

TEST(Oracles, AcceptTheReferenceAndRejectNanAndFailures) {
  const Engine nan =
      edited_reference([](const VariantRow& row, std::span<double> output) {
        if (row.place.q_index == 3) output[0] = kNan;
      });
  Engine failing = reference_engine();
  failing.run = [](const AttentionCall&) -> Status {
    return {StatusCode::kEngineFailure, "as planned"};
  };
  const std::string line =
      "batch=2 num_heads=2 seq_len=12 head_dim=8 mask=causal_bottom_right";
  for (const Oracle* oracle : all_oracles())
    for (const char* dtype : {"fp64", "fp32", "fp16", "bf16"}) {
      const std::string problem = line + " dtype=" + dtype;
      const char* id = oracle->id.data();
      EXPECT_EQ(opinion_of(id, reference_engine(), problem), Opinion::kFine)
          << id << " " << dtype;
      EXPECT_EQ(opinion_of(id, nan, problem), Opinion::kAlarm) << id;
      EXPECT_EQ(opinion_of(id, failing, problem), Opinion::kAlarm) << id;
    }
}

TEST(Allclose, AllowsOneHundredThousandthInFp32AndNotTwo) {
  const std::string line = "seq_len=16 head_dim=8 mask=causal_bottom_right";
  EXPECT_EQ(opinion_of("allclose", shifted_reference(9e-6), line),
            Opinion::kFine);
  // Outputs are below 2.45, so at most 1e-5 + 2.45 * 1.3e-6 passes.
  EXPECT_EQ(opinion_of("allclose", shifted_reference(1.4e-5), line),
            Opinion::kAlarm);
}

TEST(AllcloseLoose, AllowsOneHundredthWhateverTheDtype) {
  for (const char* dtype : {"fp32", "fp64"}) {
    const std::string line =
        std::string("seq_len=16 head_dim=8 dtype=") + dtype;
    EXPECT_EQ(opinion_of("allclose-loose", shifted_reference(0.0099), line),
              Opinion::kFine);
    EXPECT_EQ(opinion_of("allclose-loose", shifted_reference(0.0101), line),
              Opinion::kAlarm);
  }
}

TEST(Nmse, AllowsErrorsOfTwoPercentOfTheOutputEverywhere) {
  // nmse of a factor 1 + x is x^2: 0.022^2 = 4.84e-4, 0.023^2 = 5.29e-4.
  const auto scaled = [](double factor) {
    return edited_reference([=](const VariantRow&, std::span<double> row) {
      for (double& x : row) x *= factor;
    });
  };
  const std::string line = "seq_len=16 head_dim=8 dtype=fp64";
  EXPECT_EQ(opinion_of("nmse", scaled(1.022), line), Opinion::kFine);
  EXPECT_EQ(opinion_of("nmse", scaled(1.023), line), Opinion::kAlarm);
}

TEST(TwiceReferenceError, AllowsWhatPlainAttentionInTheDtypeLoses) {
  const Problem problem =
      problem_of("seq_len=16 head_dim=8 dtype=bf16 out_dtype=fp32");
  References references;
  const double own = largest_error(references.low_precision(problem, 1),
                                   references.exact(problem, 1));
  ASSERT_GT(own, 1e-4);
  ASSERT_LT(own, 5e-2);
  const auto opinion = [&](double shift) {
    const Engine engine = shifted_reference(shift);
    return find_oracle("twice-reference-error")
        ->judge({engine, problem, 1, references})
        .opinion;
  };
  EXPECT_EQ(opinion(1.99 * own), Opinion::kFine);
  EXPECT_EQ(opinion(2.01 * own + 1e-5), Opinion::kAlarm);
}

TEST(LowPrecisionReference, RoundsScoresAndWeightsToTheDtype) {
  // One channel: q = 1, keys 1 and 1 + 2^-10, values 0 and 1. In bf16 both
  // scores are 1, both weights 1/2.
  TestTensors tensors(problem_of(
      "seq_len_q=1 seq_len_kv=2 head_dim=1 dtype=fp32 softmax_scale=1"));
  tensors.fill(TensorRole::kQuery, [](auto...) { return 1.0; });
  tensors.fill(TensorRole::kKey, [](auto, auto, std::int64_t j, auto) {
    return j == 0 ? 1.0 : 1 + 0x1p-10;
  });
  tensors.fill(TensorRole::kValue,
               [](auto, auto, std::int64_t j, auto) { return j == 0 ? 0 : 1; });
  EXPECT_EQ(tensors.run(low_precision_engine(Dtype::kBf16))[0], 0.5);
  EXPECT_GT(tensors.run(low_precision_engine(Dtype::kFp32))[0], 0.5002);
}

TEST(PerturbAndRowSum, SeesALeakAcrossTheMiddleAndMissesOneBehindIt) {
  const std::string line = "seq_len=16 head_dim=8 mask=causal_bottom_right";
  const auto leak = [](std::int64_t q_index, std::int64_t key) {
    AttentionVariant variant;
    variant.allowed = [=](const VariantRow& row, KeyRanges& keys) {
      if (row.place.q_index != q_index) return;
      keys.clear();
      keys.append(0, key + 1);
    };
    return variant_engine("test:leak", "", variant);
  };
  // The cut is at 8: rows 0 to 7 must hold, keys 8 to 15 change.
  EXPECT_EQ(opinion_of("perturb-and-row-sum", leak(7, 8), line),
            Opinion::kAlarm);
  EXPECT_EQ(opinion_of("perturb-and-row-sum", leak(6, 7), line),
            Opinion::kFine);
  EXPECT_EQ(opinion_of("perturb-and-row-sum", leak(9, 10), line),
            Opinion::kFine);
}

TEST(PerturbAndRowSum, AllowsRowSumsWithinAThousandth) {
  const auto scaled = [](double factor) {
    return edited_reference([=](const VariantRow&, std::span<double> row) {
      for (double& x : row) x *= factor;
    });
  };
  // Every row sees every key: only the row sum judges.
  const std::string line = "seq_len=16 head_dim=8";
  EXPECT_EQ(opinion_of("perturb-and-row-sum", scaled(1.0009), line),
            Opinion::kFine);
  EXPECT_EQ(opinion_of("perturb-and-row-sum", scaled(1.0011), line),
            Opinion::kAlarm);
  EXPECT_EQ(opinion_of("perturb-and-row-sum", reference_engine(),
                       "seq_len_q=3 seq_len_kv=0 head_dim=8"),
            Opinion::kNone);
}

TEST(Attnguard, SeesTheDefectThatThePairMisses) {
  const std::string line = "seq_len=40 head_dim=16 mask=causal_bottom_right";
  const Engine engine = builtin("drops_last_key");
  EXPECT_EQ(opinion_of("perturb-and-row-sum", engine, line), Opinion::kFine);
  EXPECT_EQ(opinion_of("attnguard", engine, line), Opinion::kAlarm);
}

TEST(LocalFault, TouchesOneKeyOfTheRowsThatItNames) {
  const Problem problem =
      problem_of("num_heads=3 seq_len=256 head_dim=8 mask=causal_bottom_right");
  struct {
    Spread spread;
    std::int64_t rows;
  } const kCases[] = {{Spread::kOneRowOneHead, 1},
                      {Spread::kOneRowAllHeads, 3},
                      {Spread::kTileOneHead, 64},
                      {Spread::kSecondHalf, 3 * 128},
                      {Spread::kEveryRow, 3 * 256}};
  for (const auto& spread : kCases)
    for (KeyFault fault : {KeyFault::kExtra, KeyFault::kDropped})
      for (std::uint64_t seed = 0; seed < 8; ++seed) {
        const LocalFault local{fault, spread.spread, seed};
        std::int64_t rows = 0, spared = 0;
        for (std::int64_t h = 0; h < 3; ++h)
          for (std::int64_t i = 0; i < 256; ++i) {
            const std::int64_t key = local.key_of(problem, h, i);
            if (key < 0) {
              // The last row has no later key, the first no second one.
              spared += i == (fault == KeyFault::kExtra ? 255 : 0);
              continue;
            }
            ++rows;
            EXPECT_LT(key, 256);
            EXPECT_EQ(key > i, fault == KeyFault::kExtra);
          }
        EXPECT_LE(rows, spread.rows);
        EXPECT_GE(rows, spread.rows - spared);
        EXPECT_GT(rows, 0);
      }
}

TEST(LocalFault, GivesWhatTheReferenceGivesWithTheKeysEdited) {
  for (const char* kv_heads : {"2", "1"})
    for (KeyFault fault : {KeyFault::kExtra, KeyFault::kDropped})
      for (Spread spread :
           {Spread::kOneRowOneHead, Spread::kOneRowAllHeads,
            Spread::kTileOneHead, Spread::kSecondHalf, Spread::kEveryRow})
        for (double amplitude : {1.0, 30.0}) {
          TestTensors tensors(
              problem_of("num_heads=2 seq_len=128 head_dim=16 dtype=fp64 "
                         "mask=causal_bottom_right num_kv_heads=" +
                         std::string(kv_heads)));
          // Large queries: one key takes all, as in ladders.
          tensors.fill(TensorRole::kQuery, [&](auto, auto h, auto i, auto c) {
            return amplitude *
                   near_normal(derive_seed(
                       5, static_cast<std::uint64_t>((h * 128 + i) * 16 + c)));
          });
          const LocalFault local{fault, spread, 3};
          const auto memory = make_fault_memory();
          const std::vector<double> wanted =
              tensors.run(variant_engine("test", "", fault_variant(local)));
          // The second run is the one that remembers.
          tensors.run(fault_engine({fault, spread, 4}, memory));
          const std::vector<double> seen =
              tensors.run(fault_engine(local, memory));
          ASSERT_EQ(seen.size(), wanted.size());
          EXPECT_LT(largest_error(seen, wanted), 1e-12)
              << local.key_of(tensors.problem(), 0, 100);
          // With one key in charge of each row the others are worth nothing.
          if (amplitude > 1) continue;
          EXPECT_GT(largest_error(tensors.run(reference_engine()), wanted),
                    1e-9);
        }
}

}  // namespace
}  // namespace attnguard
