// Whole models on ONNX Runtime: clean decoders of several kinds pass every
// check, and those that read ahead are found and drawn.
#include "adapters/onnxruntime/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "guard/model/verify_model.h"
#include "tests/adapters/onnxruntime/tiny_model.h"
#include "tests/support/required_engine.h"

namespace attnguard {
namespace {

using testing::HasSubstr;
using Attention = TinyModel::Attention;
using Cache = TinyModel::Cache;

ModelOptions short_text(std::int64_t num_tokens = 24) {
  ModelOptions options;
  options.num_tokens = num_tokens;
  return options;
}

const CheckResult& expect_check(const ModelResult& result,
                                const std::string& id) {
  for (const CheckResult& check : result.checks)
    if (check.check == id) return check;
  static const CheckResult none;
  ADD_FAILURE() << "no check " << id;
  return none;
}

std::string told(const ModelResult& result) {
  std::string text = result.note;
  for (const CheckResult& check : result.checks) {
    text += "\n" + check.check + ": " +
            std::string(verdict_name(check.verdict)) + " " + check.note;
    for (const Finding& finding : check.findings)
      text += "\n  " + finding.message;
  }
  return text;
}

std::size_t count_cells(const InfluenceMap& map, char cell) {
  std::size_t count = 0;
  for (const std::string& row : map.cells)
    count += static_cast<std::size_t>(std::count(row.begin(), row.end(), cell));
  return count;
}

struct Clean {
  const char* name;
  TinyModel model;
  std::size_t checks;  // That say something about it.
};

void PrintTo(const Clean& clean, std::ostream* to) { *to << clean.name; }

// Each with both releases.
class CleanModels
    : public testing::TestWithParam<std::tuple<Clean, std::string>> {};

TEST_P(CleanModels, PassEveryCheck) {
  const auto& [clean, version] = GetParam();
  const Result<Model> model =
      open_onnx_model(clean.model.write(std::string(clean.name) + ".onnx"),
                      {{"version", version}, {"threads", "1"}});
  ATTNGUARD_SKIP_WITHOUT("onnxruntime", model);
  EXPECT_EQ(model.value().vocab_size, TinyModel::kVocabulary);
  EXPECT_EQ(model.value().incremental, clean.model.cache != Cache::kNone);
  const ModelResult result = verify_model(model.value(), short_text());
  EXPECT_EQ(result.verdict, Verdict::kPass) << told(result);
  std::size_t passed = 0;
  for (const CheckResult& check : result.checks)
    if (check.verdict == Verdict::kPass) ++passed;
  EXPECT_EQ(passed, clean.checks) << told(result);
  ASSERT_TRUE(result.map.has_value());
  EXPECT_EQ(count_cells(*result.map, 'X'), 0u);
  EXPECT_GT(count_cells(*result.map, '#'), 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Decoders, CleanModels,
    testing::Combine(
        testing::Values(
            Clean{"plain", {.position_ids = true}, 6},
            Clean{"plain_cache",
                  {.cache = Cache::kTwo,
                   .attention_mask = true,
                   .position_ids = true},
                  8},
            Clean{"joined_cache_int32",
                  {.cache = Cache::kJoined, .kv_heads = 2, .ids = 6},
                  8},
            Clean{"window_tied",
                  {.cache = Cache::kTwo,
                   .kv_heads = 1,
                   .window = 5,
                   .tied = true},
                  8},
            Clean{"fixed_length_constant_mask",
                  {.constant_mask = true, .batch = 1, .length = 24},
                  5},
            Clean{"fixed_batch", {.tied = true, .batch = 3}, 6},
            Clean{"one_token_at_a_time",
                  {.cache = Cache::kTwo, .batch = 1, .length = 1},
                  5},
            Clean{"half_logits", {.cache = Cache::kTwo, .logits = 10}, 8},
            Clean{"group_query",
                  {.attention = Attention::kGroupQuery,
                   .cache = Cache::kTwo,
                   .kv_heads = 2,
                   .attention_mask = true},
                  8},
            Clean{"group_query_window",
                  {.attention = Attention::kGroupQuery,
                   .cache = Cache::kTwo,
                   .kv_heads = 2,
                   .window = 7,
                   .tied = true,
                   .attention_mask = true,
                   .position_ids = true},
                  8},
            Clean{"operator",
                  {.attention = Attention::kOperator,
                   .cache = Cache::kTwo,
                   .kv_heads = 2},
                  8}),
        testing::Values("1.26.0", "1.30.0")),
    [](const auto& suite) {
      std::string name = std::string(std::get<0>(suite.param).name) + "_" +
                         std::get<1>(suite.param);
      std::replace(name.begin(), name.end(), '.', '_');
      return name;
    });

struct Leaking {
  const char* name;
  TinyModel model;
};

void PrintTo(const Leaking& leaking, std::ostream* to) { *to << leaking.name; }

class LeakingModels : public testing::TestWithParam<Leaking> {};

TEST_P(LeakingModels, AreFoundAndDrawn) {
  const Leaking& leaking = GetParam();
  for (const char* version : {"1.26.0", "1.30.0"}) {
    const Result<Model> model = open_onnx_model(
        leaking.model.write(), {{"version", version}, {"threads", "1"}});
    ATTNGUARD_SKIP_WITHOUT("onnxruntime", model);
    const ModelResult result = verify_model(model.value(), short_text());
    EXPECT_EQ(result.verdict, Verdict::kViolation);
    const CheckResult& future = expect_check(result, "model-future");
    EXPECT_EQ(future.verdict, Verdict::kViolation) << told(result);
    ASSERT_FALSE(future.findings.empty());
    EXPECT_EQ(future.findings.front().kind, FindingKind::kLeak);
    EXPECT_EQ(expect_check(result, "model-repeatable").verdict, Verdict::kPass);
    ASSERT_TRUE(result.map.has_value());
    EXPECT_THAT(result.map->cells, testing::ElementsAre("#X", "##"));
    // The logits of one pass come from more than a cache can hold.
    EXPECT_EQ(expect_check(result, "model-loss-gap").verdict,
              Verdict::kViolation)
        << told(result);
    ASSERT_TRUE(result.loss.has_value());
    EXPECT_GT(result.loss->mean_difference, result.loss->bound);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Decoders, LeakingModels,
    testing::Values(
        Leaking{"no_mask", {.fault = TinyModel::Fault::kNoMask}},
        Leaking{"no_mask_cache",
                {.fault = TinyModel::Fault::kNoMask, .cache = Cache::kTwo}},
        Leaking{"softmax_over_queries",
                {.fault = TinyModel::Fault::kQueryAxis}},
        Leaking{"softmax_over_queries_cache",
                {.fault = TinyModel::Fault::kQueryAxis,
                 .cache = Cache::kJoined,
                 .attention_mask = true}},
        Leaking{"off_by_one", {.fault = TinyModel::Fault::kOffByOne}},
        Leaking{"off_by_one_cache",
                {.fault = TinyModel::Fault::kOffByOne,
                 .cache = Cache::kTwo,
                 .kv_heads = 2,
                 .tied = true}}),
    [](const auto& tested) { return std::string(tested.param.name); });

// A batch mate of another length is filled up and cut off again.
TEST(OnnxModel, BatchesSequencesOfUnlikeLengths) {
  for (const Cache cache : {Cache::kNone, Cache::kTwo, Cache::kJoined}) {
    const TinyModel tiny{.cache = cache, .attention_mask = true};
    const Result<Model> opened =
        open_onnx_model(tiny.write(), {{"threads", "1"}});
    ATTNGUARD_SKIP_WITHOUT("onnxruntime", opened);
    const Model& model = opened.value();
    EXPECT_EQ(model.max_sequences, 4);
    const std::vector<std::int32_t> texts[] = {{3, 1, 4, 1, 5, 9, 2}, {6, 5}};
    std::vector<std::vector<float>> alone, together;
    for (std::int64_t s : {0, 1}) {
      const auto& text = texts[s];
      alone.emplace_back(text.size() * TinyModel::kVocabulary);
      together.emplace_back(alone.back().size());
      const ModelStep step{s, 0, text, alone.back()};
      ASSERT_TRUE(model.decode({&step, 1}).ok());
      if (model.clear) {
        ASSERT_TRUE(model.clear(s).ok());
      }
    }
    const ModelStep both[] = {{0, 0, texts[0], together[0]},
                              {1, 0, texts[1], together[1]}};
    ASSERT_TRUE(model.decode(both).ok());
    for (std::size_t s : {0u, 1u})
      EXPECT_THAT(together[s],
                  testing::Pointwise(testing::FloatNear(1e-4f), alone[s]));
    if (!model.incremental) continue;
    // Both caches go on where their sequences ended.
    const std::vector<std::int32_t> next = {7};
    std::vector<float> after[2], expected[2];
    ModelStep steps[2];
    for (std::size_t s : {0u, 1u}) {
      after[s].resize(TinyModel::kVocabulary);
      steps[s] = {static_cast<std::int64_t>(s),
                  static_cast<std::int64_t>(texts[s].size()), next, after[s]};
    }
    ASSERT_TRUE(model.decode(steps).ok());
    for (std::size_t s : {0u, 1u}) {
      std::vector<std::int32_t> whole = texts[s];
      whole.push_back(7);
      std::vector<float> all(whole.size() * TinyModel::kVocabulary);
      ASSERT_TRUE(model.clear(2).ok());
      const ModelStep step{2, 0, whole, all};
      ASSERT_TRUE(model.decode({&step, 1}).ok());
      expected[s].assign(all.end() - TinyModel::kVocabulary, all.end());
      EXPECT_THAT(after[s],
                  testing::Pointwise(testing::FloatNear(1e-4f), expected[s]));
    }
  }
}

TEST(OnnxModel, RefusesStepsThatDoNotFit) {
  const TinyModel tiny{.cache = Cache::kTwo};
  const Result<Model> opened =
      open_onnx_model(tiny.write(), {{"sequences", "2"}});
  ATTNGUARD_SKIP_WITHOUT("onnxruntime", opened);
  const Model& model = opened.value();
  const std::vector<std::int32_t> tokens = {1, 2};
  std::vector<float> logits(2 * TinyModel::kVocabulary);
  const auto message = [&](const ModelStep& step) {
    return model.decode({&step, 1}).message();
  };
  EXPECT_THAT(message({2, 0, tokens, logits}), HasSubstr("no sequence 2"));
  EXPECT_THAT(message({-1, 0, tokens, logits}), HasSubstr("no sequence -1"));
  EXPECT_THAT(message({0, 3, tokens, logits}),
              HasSubstr("a step at position 3, where 0 tokens are held"));
  EXPECT_THAT(message({0, 0, {}, logits}), HasSubstr("without tokens"));
  const std::vector<std::int32_t> unknown = {1, 37};
  EXPECT_THAT(message({0, 0, unknown, logits}), HasSubstr("Gather"));
  EXPECT_FALSE(model.clear(2).ok());
  // Nothing of that was kept.
  EXPECT_EQ(message({0, 0, tokens, logits}), "");
}

}  // namespace
}  // namespace attnguard
