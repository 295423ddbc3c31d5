// What the correct built-in engines owe.
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "adapters/plain/builtin_table.h"
#include "guard/problem/random_problem.h"
#include "tests/engine/test_tensors.h"

namespace attnguard {
namespace {

bool is_known_bad(const BuiltinEngine& engine) {
  return engine.summary.substr(0, 11) == "known bad: ";
}

Engine make_named(const BuiltinEngine& builtin) {
  Engine engine = builtin.make();
  engine.name = builtin.name;
  return engine;
}

// Calls test(engine) for every correct engine.
template <typename Test>
void for_each_correct_engine(Test&& test) {
  int count = 0;
  for (const BuiltinEngine* builtin : all_builtin_engines()) {
    if (is_known_bad(*builtin)) continue;
    SCOPED_TRACE(builtin->name);
    test(make_named(*builtin));
    ++count;
  }
  EXPECT_GE(count, 3);
}

TEST(RandomProblems, AreValidAndMixEveryDtypeMaskAndLayout) {
  std::set<Dtype> dtypes;
  std::set<std::string> masks;
  std::set<Layout> layouts;
  std::int64_t rows = 0, strided = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Problem problem = random_problem(seed, Variety::kShapes);
    ASSERT_TRUE(problem.validate().ok()) << problem.validate().message();
    dtypes.insert(problem.dtype);
    for (const MaskTerm& term : problem.mask.terms())
      masks.insert(std::string(term.kind->name));
    layouts.insert(problem.layout);
    rows += problem.max_len_q() > 0 && problem.max_len_kv() > 0;
    strided += problem.output_strides.has_value();
  }
  EXPECT_EQ(dtypes.size(), all_dtypes().size());
  EXPECT_EQ(masks.size(), all_mask_kinds().size());
  EXPECT_EQ(layouts.size(), 3u);
  EXPECT_GT(rows, 200);
  EXPECT_GT(strided, 50);
}

TEST(CorrectEngines, StayWithinTheReferenceBoundOnRandomProblems) {
  for_each_correct_engine([](const Engine& engine) {
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      TestTensors tensors(random_problem(seed, Variety::kShapes), seed);
      ASSERT_EQ(outside_bound(tensors, engine), "") << "seed " << seed;
    }
  });
}

TEST(CorrectEngines, TouchNeitherInputsNorGapsNorGuardBytes) {
  for_each_correct_engine([](const Engine& engine) {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      TestTensors tensors(random_problem(seed, Variety::kShapes), seed);
      const auto query = tensors.bytes(TensorRole::kQuery);
      const auto key = tensors.bytes(TensorRole::kKey);
      const auto value = tensors.bytes(TensorRole::kValue);
      tensors.run(engine);
      EXPECT_EQ(query, tensors.bytes(TensorRole::kQuery));
      EXPECT_EQ(key, tensors.bytes(TensorRole::kKey));
      EXPECT_EQ(value, tensors.bytes(TensorRole::kValue));
      // With every owned element poisoned again, nothing else has changed.
      const auto written = tensors.bytes(TensorRole::kOutput);
      const TensorView out = tensors.view(TensorRole::kOutput);
      const Problem& problem = tensors.problem();
      for (std::int64_t b = 0; b < problem.batch; ++b)
        for (std::int64_t h = 0; h < problem.num_heads; ++h)
          for (std::int64_t i = 0; i < problem.len_q(b); ++i)
            for (std::int64_t c = 0; c < problem.head_dim_v; ++c)
              fill_poison(out.dtype, out.at(b, h, i, c), 1);
      auto poisoned = tensors.bytes(TensorRole::kOutput);
      fill_poison(
          out.dtype, poisoned.data(),
          static_cast<std::int64_t>(poisoned.size() / dtype_size(out.dtype)));
      EXPECT_EQ(poisoned, tensors.bytes(TensorRole::kOutput)) << seed;
    }
  });
}

TEST(CorrectEngines, NeverLookAtKeysThatNoRowMayRead) {
  for_each_correct_engine([](const Engine& engine) {
    for (const char* line :
         {"seq_len_q=70 seq_len_kv=200 head_dim=24 mask=causal_top_left",
          "seq_len_q=3 seq_len_kv=130 head_dim=8 "
          "mask=sliding_window(left=5,right=0)"}) {
      TestTensors tensors(problem_of(line));
      const std::vector<double> clean = tensors.run(engine);
      int poisoned = 0;
      for (std::int64_t j = 0; j < tensors.problem().max_len_kv(); ++j) {
        bool visible = false;
        KeyRanges keys;
        for (std::int64_t i = 0; i < tensors.problem().max_len_q(); ++i) {
          tensors.problem().mask.allowed(tensors.problem().row(0, i), keys);
          visible = visible || keys.contains(j);
        }
        if (visible) continue;
        tensors.poison_key(0, 0, j);
        ++poisoned;
      }
      ASSERT_GT(poisoned, 100);
      EXPECT_EQ(clean, tensors.run(engine)) << line;
    }
  });
}

TEST(CorrectEngines, KeepNaNOfALaterTokenOutOfEarlierRows) {
  for_each_correct_engine([](const Engine& engine) {
    TestTensors tensors(
        problem_of("seq_len=100 head_dim=16 mask=causal_bottom_right"));
    const std::vector<double> clean = tensors.run(engine);
    tensors.poison_key(0, 0, 70);
    const std::vector<double> dirty = tensors.run(engine);
    EXPECT_TRUE(
        std::equal(clean.begin(), clean.begin() + 70 * 16, dirty.begin()));
    for (std::size_t at = 70 * 16; at < dirty.size(); ++at)
      EXPECT_TRUE(std::isnan(dirty[at])) << at;
  });
}

TEST(CorrectEngines, GiveZeroForARowWithoutKeys) {
  for_each_correct_engine([](const Engine& engine) {
    TestTensors tensors(problem_of(
        "seq_len_q=9 seq_len_kv=4 head_dim=8 mask=causal_bottom_right"));
    tensors.run(engine);
    for (std::int64_t i = 0; i < 5; ++i)
      EXPECT_EQ(tensors.output(0, 0, i, 3), 0.0) << i;
    EXPECT_NE(tensors.output(0, 0, 5, 3), 0.0);
  });
}

TEST(CorrectEngines, ReturnTheOnlyVisibleValueBitForBit) {
  for_each_correct_engine([](const Engine& engine) {
    for (const DtypeInfo& dtype : all_dtypes()) {
      Problem problem = problem_of(
          "seq_len=80 head_dim=8 mask=sliding_window(left=0,right=0)");
      problem.dtype = dtype.dtype;
      TestTensors tensors(problem);
      tensors.run(engine);
      for (std::int64_t i = 0; i < 80; ++i) {
        double value = 0;
        tensors.view(TensorRole::kValue).load_row(0, 0, i, 5, 1, &value);
        EXPECT_EQ(tensors.output(0, 0, i, 5), value) << dtype.name << i;
      }
    }
  });
}

// A ladder: scores rise by 20 nats from key to key, so that each row's result
// is the value of the last key it sees. Values are +-1.
double ladder_value(std::int64_t kv_index, std::int64_t channel) {
  return mix_bits(static_cast<std::uint64_t>(kv_index * 64 + channel)) & 1
             ? 1.0
             : -1.0;
}

TEST(CorrectEngines, GiveTheLastVisibleKeyOfALadderBitForBit) {
  for_each_correct_engine([](const Engine& engine) {
    for (double step : {20.0, -20.0}) {
      TestTensors tensors(
          problem_of("seq_len=300 head_dim=8 softmax_scale=1 "
                     "mask=causal_bottom_right"));
      tensors.fill(TensorRole::kQuery, [&](auto, auto, auto, std::int64_t c) {
        return c == 0 ? step : 0.0;
      });
      tensors.fill(TensorRole::kKey,
                   [](auto, auto, std::int64_t j, std::int64_t c) {
                     return c == 0 ? static_cast<double>(j) : 0.0;
                   });
      tensors.fill(TensorRole::kValue,
                   [](auto, auto, std::int64_t j, std::int64_t c) {
                     return ladder_value(j, c);
                   });
      tensors.run(engine);
      for (std::int64_t i = 0; i < 300; ++i)
        for (std::int64_t c = 0; c < 8; ++c)
          ASSERT_EQ(tensors.output(0, 0, i, c),
                    ladder_value(step > 0 ? i : 0, c))
              << "row " << i << " channel " << c;
    }
  });
}

TEST(CorrectEngines, SurviveScoresThatAreAllFarBelowZero) {
  for_each_correct_engine([](const Engine& engine) {
    TestTensors tensors(
        problem_of("seq_len=130 head_dim=4 softmax_scale=1 mask=full"));
    const std::vector<double> plain = [&] {
      tensors.fill(TensorRole::kQuery,
                   [](auto, auto, auto, std::int64_t c) { return c == 0; });
      tensors.fill(TensorRole::kKey,
                   [](auto, auto, std::int64_t j, std::int64_t c) {
                     return c == 0 ? static_cast<double>(j % 5) : 0.0;
                   });
      return tensors.run(engine);
    }();
    tensors.fill(TensorRole::kKey,
                 [](auto, auto, std::int64_t j, std::int64_t c) {
                   return c == 0 ? static_cast<double>(j % 5) - 70000 : 0.0;
                 });
    EXPECT_EQ(plain, tensors.run(engine));
  });
}

TEST(CorrectEngines, GiveNoWeightToScoresOfMinusInfinity) {
  for_each_correct_engine([](const Engine& engine) {
    TestTensors tensors(problem_of("seq_len=130 head_dim=4 softmax_scale=1"));
    const auto hidden = [](std::int64_t j) { return j < 70; };
    tensors.fill(TensorRole::kQuery,
                 [](auto, auto, auto, std::int64_t c) { return c == 0; });
    tensors.fill(TensorRole::kKey,
                 [&](auto, auto, std::int64_t j, std::int64_t c) {
                   return c == 0 && hidden(j) ? -HUGE_VAL : 0.0;
                 });
    tensors.fill(TensorRole::kValue, [&](auto, auto, std::int64_t j, auto) {
      return hidden(j) ? 5.0 : 1.0;
    });
    for (double x : tensors.run(engine)) ASSERT_NEAR(x, 1.0, 1e-6);
  });
}

TEST(TiledEngine, GivesTheSameBitsForAnyThreadCount) {
  const Engine engine = make_named(kBuiltinTiled);
  const int threads = omp_get_max_threads();
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    TestTensors tensors(random_problem(seed, Variety::kShapes), seed);
    omp_set_num_threads(1);
    const std::vector<double> one = tensors.run(engine);
    omp_set_num_threads(2);
    EXPECT_EQ(one, tensors.run(engine)) << seed;
    omp_set_num_threads(5);
    EXPECT_EQ(one, tensors.run(engine)) << seed;
    omp_set_num_threads(threads);
  }
}

// The same row computed alone and among others: another tile height, and
// tiles that are whole for the one and partial for the other.
TEST(TiledEngine, GivesARowTheSameBitsWhateverItsNeighboursAre) {
  const Engine engine = make_named(kBuiltinTiled);
  TestTensors many(
      problem_of("seq_len=200 head_dim=40 mask=causal_bottom_right"));
  many.run(engine);
  for (std::int64_t i : {0, 5, 63, 64, 127, 150, 199}) {
    TestTensors alone(problem_of(
        "seq_len_q=1 seq_len_kv=" + std::to_string(i + 1) + " head_dim=40"));
    for (TensorRole role :
         {TensorRole::kQuery, TensorRole::kKey, TensorRole::kValue})
      alone.fill(role, [&](std::int64_t, std::int64_t, std::int64_t s,
                           std::int64_t c) {
        double value = 0;
        many.view(role).load_row(0, 0, role == TensorRole::kQuery ? i : s, c, 1,
                                 &value);
        return value;
      });
    alone.run(engine);
    for (std::int64_t c = 0; c < 40; ++c)
      EXPECT_EQ(alone.output(0, 0, 0, c), many.output(0, 0, i, c))
          << "row " << i << " channel " << c;
  }
}

}  // namespace
}  // namespace attnguard
