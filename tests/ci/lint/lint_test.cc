// `attnguard lint`, in process, on models that the tests write: each rule on
// what it must find, and on the nearest thing that it must not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/ci/lint/models.h"
#include "tests/ci/run_words.h"

namespace attnguard::lint_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Json = nlohmann::json;

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kMin = std::numeric_limits<float>::lowest();

Outcome run_lint(std::vector<std::string> words) {
  words.insert(words.begin(), "lint");
  return run_words(words);
}

// "rule node" of each violation, "rule node (note)" of each note.
std::vector<std::string> lint(const std::string& path,
                              std::size_t attentions = 1) {
  const Outcome outcome = run_lint({path, "--format", "json"});
  const Json file = Json::parse(outcome.out)["files"][0];
  EXPECT_TRUE(file["error"].is_null()) << file;
  EXPECT_EQ(std::size_t(file["attentions"]["plain"]) +
                std::size_t(file["attentions"]["fused"]),
            attentions);
  std::vector<std::string> found;
  bool violation = false;
  for (const Json& finding : file["findings"]) {
    const bool note = finding["severity"] == "note";
    violation |= !note;
    found.push_back(std::string(finding["rule"]) + " " +
                    std::string(finding["node"]) + (note ? " (note)" : ""));
    EXPECT_FALSE(std::string(finding["message"]).empty());
    EXPECT_FALSE(std::string(finding["fix"]).empty());
  }
  EXPECT_EQ(outcome.code, violation ? 1 : 0) << outcome.out;
  return found;
}

Attributes axis(std::int64_t number) { return {{"axis", number}}; }

Layer causal() { return {.before = where_mask(triangle(0, 1, 0), -kInf)}; }

TEST(LintClean, Architectures) {
  EXPECT_THAT(lint(one_layer({})), IsEmpty());
  EXPECT_THAT(lint(one_layer(causal())), IsEmpty());
  Layer layer = causal();
  layer.grouped = true;
  EXPECT_THAT(lint(one_layer(layer)), IsEmpty());
  layer = causal();
  layer.prescaled = true;
  EXPECT_THAT(lint(one_layer(layer)), IsEmpty());
  EXPECT_THAT(lint(one_layer({.before = add_mask(triangle(0, 0, kMin))})),
              IsEmpty());
  EXPECT_THAT(lint(one_layer({.before = add_mask(triangle(0, 0, -65504), kHalf),
                              .type = kHalf})),
              IsEmpty());
  layer = causal();
  layer.softmax = axis(3);
  EXPECT_THAT(lint(one_layer(layer, 11)), IsEmpty());
  EXPECT_THAT(lint(one_layer(layer, 17)), IsEmpty());
}

TEST(LintClean, Opset17DefaultAxisIsTheLast) {
  Layer layer = causal();
  layer.softmax = {};
  EXPECT_THAT(lint(one_layer(layer, 17)), IsEmpty());
  EXPECT_THAT(lint(one_layer(layer, 11)), ElementsAre("softmax-axis softmax"));
}

TEST(SoftmaxAxis, OverQueriesHeadsAndMergedAxes) {
  for (std::int64_t wrong : {-2, 2, 1, 0, -3})
    EXPECT_THAT(lint(one_layer({.softmax = axis(wrong)})),
                ElementsAre("softmax-axis softmax"))
        << wrong;
  EXPECT_THAT(lint(one_layer({.softmax = axis(2)}, 11)),
              ElementsAre("softmax-axis softmax"));
}

TEST(SoftmaxAxis, TransposedScores) {
  EXPECT_THAT(lint(one_layer({.softmax = axis(-2), .transposed = true})),
              IsEmpty());
  EXPECT_THAT(lint(one_layer({.softmax = axis(2), .transposed = true})),
              IsEmpty());
  EXPECT_THAT(lint(one_layer({.softmax = axis(-1), .transposed = true})),
              ElementsAre("softmax-axis softmax"));
}

// As PyTorch exports dim=-2 for opset 11: turn, Softmax, turn back.
TEST(SoftmaxAxis, FollowsTransposesOnBothSides) {
  const Layer::Hook turn = [](Builder& b, Value x) {
    return b.op("Transpose", {x}, {{"perm", Dims{0, 1, 3, 2}}});
  };
  EXPECT_THAT(
      lint(one_layer({.before = turn, .after = turn, .softmax = axis(3)}, 11)),
      ElementsAre("softmax-axis softmax"));
  EXPECT_THAT(
      lint(one_layer({.before = turn, .after = turn, .softmax = axis(-2)}, 17)),
      IsEmpty());
}

TEST(SoftmaxAxis, Einsum) {
  for (const bool wrong : {false, true}) {
    Builder b;
    const Value q = b.input("q", {-1, -1, 2, 4}),
                k = b.input("k", {-1, -1, 2, 4}),
                v = b.input("v", {-1, -1, 2, 4});
    const Value scores =
        b.op("Einsum", {q, k}, {{"equation", std::string("bqhd,bkhd->bhqk")}});
    const Value weights =
        b.op("Softmax", {scores}, axis(wrong ? 2 : 3), "softmax");
    b.output(b.op("Einsum", {weights, v},
                  {{"equation", std::string("bhqk,bkhd->bqhd")}}));
    if (wrong)
      EXPECT_THAT(lint(b.write()), ElementsAre("softmax-axis softmax"));
    else
      EXPECT_THAT(lint(b.write()), IsEmpty());
  }
}

// The rank is known neither from types nor operators.
TEST(SoftmaxAxis, UnknownRankIsANote) {
  Builder b;
  const Value scores = b.op("MatMul", {"q", "k"});
  b.output(b.op("MatMul", {b.op("Softmax", {scores}, axis(2), "s"), "v"}));
  for (const char* name : {"q", "k", "v"}) b.op("Unknown", {name});
  EXPECT_THAT(lint(b.write()), ElementsAre("softmax-axis s (note)"));
}

Layer::Hook times_mask(bool renormalise) {
  return [=](Builder& b, Value weights) {
    const Value mask = b.constant({1, 1, kTokens, kTokens}, triangle(0, 1, 0));
    Value masked = b.op("Mul", {weights, mask}, {}, "late_mask");
    if (!renormalise) return masked;
    const Value sum = b.op("ReduceSum", {masked, b.vector({-1})});
    return b.op("Div", {masked, sum});
  };
}

TEST(MaskAfterSoftmax, FoundUnlessNormalisedAgain) {
  EXPECT_THAT(lint(one_layer({.after = times_mask(false)})),
              ElementsAre("mask-after-softmax late_mask"));
  EXPECT_THAT(lint(one_layer({.after = times_mask(true)})), IsEmpty());
}

TEST(MaskAfterSoftmax, AddedAndByWhere) {
  const Layer::Hook added = [](Builder& b, Value weights) {
    return b.op("Add",
                {weights, b.constant({kTokens, kTokens}, triangle(0, 0, kMin))},
                {}, "late_add");
  };
  EXPECT_THAT(lint(one_layer({.after = added})),
              ElementsAre("mask-after-softmax late_add"));
  const Layer::Hook replaced = [](Builder& b, Value weights) {
    const Value mask = b.input("allowed", {-1, 1, -1, -1}, kBool);
    return b.op("Where", {mask, weights, b.scalar(0)}, {}, "late_where");
  };
  EXPECT_THAT(lint(one_layer({.after = replaced})),
              ElementsAre("mask-after-softmax late_where"));
}

TEST(MaskAfterSoftmax, NotDropoutGuardsHeadMasksOrASecondTime) {
  const Layer::Hook scale = [](Builder& b, Value weights) {
    const Value kept =
        b.op("Less", {b.op("RandomUniformLike", {weights}), b.scalar(0.9)});
    weights =
        b.op("Mul", {weights, b.op("Cast", {kept}, {{"to", std::int64_t{1}}})});
    weights = b.op("Mul", {weights, b.input("head_mask", {1, kHeads, 1, 1})});
    weights = b.op("Where", {b.op("IsNaN", {weights}), b.scalar(0), weights});
    return b.op("Dropout", {weights});
  };
  EXPECT_THAT(lint(one_layer({.after = scale})), IsEmpty());
  const Layer::Hook early = [](Builder& b, Value scores) {
    const Value mask = b.input("mask", {-1, 1, -1, -1}, kBool);
    return b.op("Where", {mask, scores, b.scalar(-kInf)});
  };
  const Layer::Hook late = [](Builder& b, Value weights) {
    return b.op("Where", {"mask", weights, b.scalar(0)});
  };
  EXPECT_THAT(lint(one_layer({.before = early, .after = late})), IsEmpty());
}

TEST(MaskTriangle, UpperInvertedAndOffByOne) {
  const auto found = ElementsAre("mask-triangle where_mask");
  const auto layer = [](std::vector<double> allowed) {
    return one_layer({.before = where_mask(std::move(allowed), -kInf)});
  };
  EXPECT_THAT(lint(layer(triangle(-1, 0, 1))), found);  // Itself and later.
  EXPECT_THAT(lint(layer(triangle(0, 0, 1))), found);   // Later only.
  EXPECT_THAT(lint(layer(triangle(1, 1, 0))), found);
  EXPECT_THAT(lint(layer(triangle(-1, 1, 0))), found);
  EXPECT_THAT(lint(layer(triangle(0, 1, 0))), IsEmpty());
  std::vector<double> window = triangle(0, 1, 0);
  const std::vector<double> outside = triangle(-3, 1, 0);
  for (std::size_t i = 0; i < window.size(); ++i) window[i] -= outside[i];
  EXPECT_THAT(lint(layer(window)), IsEmpty());
  EXPECT_THAT(lint(layer(std::vector<double>(36, 1))), IsEmpty());
}

TEST(MaskTriangle, Additive) {
  EXPECT_THAT(lint(one_layer({.before = add_mask(triangle(0, -kInf, 0))})),
              ElementsAre("mask-triangle add_mask"));
  EXPECT_THAT(lint(one_layer({.before = add_mask(triangle(1, 0, -kInf))})),
              ElementsAre("mask-triangle add_mask"));
  // ALiBi is no mask.
  std::vector<double> bias;
  for (int q = 0; q < kTokens; ++q)
    for (int k = 0; k < kTokens; ++k) bias.push_back(-50.0 * std::abs(q - k));
  EXPECT_THAT(lint(one_layer({.before = add_mask(bias)})), IsEmpty());
}

// The scores lie as [key, query], so the upper triangle is the right one.
TEST(MaskTriangle, FollowsTransposedScores) {
  Layer layer{.softmax = axis(-2), .transposed = true};
  layer.before = where_mask(triangle(-1, 0, 1), -kInf);
  EXPECT_THAT(lint(one_layer(layer)), IsEmpty());
  layer.before = where_mask(triangle(0, 1, 0), -kInf);
  EXPECT_THAT(lint(one_layer(layer)), ElementsAre("mask-triangle where_mask"));
}

// tril(ones(n, n), k) of a length that only a run knows, then Where.
Layer::Hook trilu_mask(std::int64_t diagonal, bool upper) {
  return [=](Builder& b, Value scores) {
    const Value length =
        b.op("Gather", {b.op("Shape", {"hidden"}), b.vector({1})});
    const Value shape = b.op("Concat", {length, length}, axis(0));
    const Value ones = b.op("Expand", {b.scalar(1), shape});
    const Value mask =
        b.op("Trilu", {ones, b.scalar(static_cast<double>(diagonal), kInt64)},
             {{"upper", std::int64_t{upper}}});
    const Value hidden = b.op("Equal", {mask, b.scalar(0)});
    return b.op("Where", {hidden, b.scalar(-kInf), scores}, {}, "where_mask");
  };
}

TEST(MaskTriangle, TriluOfARuntimeLength) {
  EXPECT_THAT(lint(one_layer({.before = trilu_mask(0, false)})), IsEmpty());
  const auto found = ElementsAre("mask-triangle where_mask");
  EXPECT_THAT(lint(one_layer({.before = trilu_mask(1, false)})), found);
  EXPECT_THAT(lint(one_layer({.before = trilu_mask(-1, false)})), found);
  EXPECT_THAT(lint(one_layer({.before = trilu_mask(0, true)})), found);
}

// key <= query by Range, together with a padding mask from outside.
TEST(MaskTriangle, ComparisonsWithPadding) {
  for (const bool wrong : {false, true}) {
    const Layer::Hook hook = [=](Builder& b, Value scores) {
      const Value length =
          b.op("Squeeze",
               {b.op("Gather", {b.op("Shape", {"hidden"}), b.vector({1})})});
      const Value range =
          b.op("Range", {b.scalar(0, kInt64), length, b.scalar(1, kInt64)});
      const Value q = b.op("Unsqueeze", {range, b.vector({0, 1, 3})});
      const Value k = b.op("Unsqueeze", {range, b.vector({0, 1, 2})});
      const Value causal =
          b.op(wrong ? "GreaterOrEqual" : "LessOrEqual", {k, q});
      const Value mask =
          b.op("And", {causal, b.input("padding", {-1, 1, 1, -1}, kBool)});
      return b.op("Where", {mask, scores, b.scalar(-kInf)}, {}, "where_mask");
    };
    if (wrong)
      EXPECT_THAT(lint(one_layer({.before = hook})),
                  ElementsAre("mask-triangle where_mask"));
    else
      EXPECT_THAT(lint(one_layer({.before = hook})), IsEmpty());
  }
}

TEST(MaskFinite, ByDtype) {
  const auto by_where = [](double fill, int type) {
    return lint(one_layer(
        {.before = where_mask(triangle(0, 1, 0), fill, type), .type = type}));
  };
  const auto found = ElementsAre("mask-finite where_mask");
  EXPECT_THAT(by_where(-1e4, kFloat), found);
  EXPECT_THAT(by_where(-1e9, kFloat), found);
  EXPECT_THAT(by_where(0, kFloat), found);
  EXPECT_THAT(by_where(kMin, kFloat), IsEmpty());
  EXPECT_THAT(by_where(-1e4, kHalf), found);
  EXPECT_THAT(by_where(-65504, kHalf), IsEmpty());
  EXPECT_THAT(by_where(-40000, kHalf), IsEmpty());
  EXPECT_THAT(lint(one_layer({.before = add_mask(triangle(0, 0, -1e4))})),
              ElementsAre("mask-finite add_mask"));
}

// As BERT does: (1 - mask) * number of a padding mask known only at a run.
TEST(MaskFinite, PaddingTimesANumber) {
  const auto model = [](double number, bool half) {
    const Layer::Hook hook = [=](Builder& b, Value scores) {
      const Value mask =
          b.op("Cast", {b.input("attention_mask", {-1, -1}, kInt64)},
               {{"to", std::int64_t{kFloat}}});
      const Value wide = b.op("Unsqueeze", {mask, b.vector({1, 2})});
      Value bias =
          b.op("Mul", {b.op("Sub", {b.scalar(1), wide}), b.scalar(number)});
      if (half) bias = b.op("Cast", {bias}, {{"to", std::int64_t{kHalf}}});
      return b.op("Add", {scores, bias}, {}, "padding");
    };
    return one_layer({.before = hook, .type = half ? kHalf : kFloat});
  };
  EXPECT_THAT(lint(model(-10000, false)), ElementsAre("mask-finite padding"));
  EXPECT_THAT(lint(model(kMin, false)), IsEmpty());
  EXPECT_THAT(lint(model(-10000, true)), ElementsAre("mask-finite padding"));
  EXPECT_THAT(lint(model(-1e9, true)), IsEmpty());  // -inf in fp16.
}

// scores * mask - 10000 * (1 - mask), as GPT-2 had it.
TEST(MaskFinite, Subtracted) {
  const Layer::Hook hook = [](Builder& b, Value scores) {
    const Value mask = b.constant({kTokens, kTokens}, triangle(0, 1, 0));
    const Value rest =
        b.op("Mul", {b.op("Sub", {b.scalar(1), mask}), b.scalar(1e4)});
    return b.op("Sub", {b.op("Mul", {scores, mask}), rest}, {}, "subtract");
  };
  EXPECT_THAT(lint(one_layer({.before = hook})),
              ElementsAre("mask-finite subtract"));
}

std::string cached(const Layer& form, std::int64_t tokens = -1) {
  Builder b;
  Layer layer = form;
  b.input("input_ids", {-1, tokens}, kInt64);
  const Value hidden = b.input("hidden", {-1, tokens, kWidth});
  layer.past_key = b.input("past_key_values.0.key", {-1, kHeads, -1, 4});
  b.output(layer(b, hidden));
  b.output("present.0.key");
  return b.write();
}

TEST(MaskMissing, WithACache) {
  EXPECT_THAT(lint(cached({})), ElementsAre("mask-missing softmax"));
  EXPECT_THAT(lint(cached(causal())), IsEmpty());
  EXPECT_THAT(lint(cached({}, 1)), IsEmpty());  // One token at a time.
}

std::string layers(const std::vector<Layer>& all) {
  Builder b;
  Value hidden = b.input("hidden", {-1, -1, kWidth});
  for (const Layer& layer : all) hidden = layer(b, hidden);
  b.output(hidden);
  return b.write();
}

TEST(MaskMissing, WhereOtherLayersHaveOne) {
  Layer bare{.name = "bare"};
  EXPECT_THAT(lint(layers({causal(), bare, causal()}), 3),
              ElementsAre("mask-missing bare"));
  EXPECT_THAT(lint(layers({bare, causal()}), 2),
              ElementsAre("mask-missing bare"));
  EXPECT_THAT(lint(layers({bare, bare}), 2), IsEmpty());
  EXPECT_THAT(lint(layers({bare, bare, causal()}), 3), IsEmpty());  // A tower.
}

TEST(MaskMissing, NotCrossAttentionNorTheEncoder) {
  Builder b;
  const Value source = Layer{}(b, b.input("source", {-1, -1, kWidth}));
  Value hidden = causal()(b, b.input("hidden", {-1, -1, kWidth}));
  Layer cross{.name = "cross"};
  cross.keys_from = source;
  hidden = cross(b, hidden);
  b.output(causal()(b, hidden));
  EXPECT_THAT(lint(b.write(), 4), IsEmpty());
}

TEST(Fused, PaddingFillIsANoteAndMasksAreJudged) {
  Builder b;
  const Value q = b.input("q", {-1, -1, 8}), k = b.input("k", {-1, -1, 8}),
              v = b.input("v", {-1, -1, 8});
  const Value padding = b.input("padding", {-1, -1}, kInt64);
  const Attributes heads = {{"num_heads", std::int64_t{2}}};
  b.output(b.op("MultiHeadAttention", {q, k, v, "", padding}, heads, "mha",
                "com.microsoft"));
  b.output(
      b.op("MultiHeadAttention", {q, k, v}, heads, "bare", "com.microsoft"));
  b.output(
      b.op("GroupQueryAttention", {q, k, v}, heads, "gqa", "com.microsoft"));
  const Value mask = b.constant({kTokens, kTokens}, triangle(1, 1, 0), kBool);
  b.output(b.op("Attention", {q, k, v, mask}, {}, "attention"));
  EXPECT_THAT(lint(b.write(), 4),
              ElementsAre("mask-triangle attention", "mask-finite mha (note)"));
}

TEST(Lint, BodiesOfIfAreVisited) {
  Builder b;
  const Value hidden = b.input("hidden", {-1, -1, kWidth});
  b.wrap_in_if(Layer{.softmax = axis(2)}(b, hidden));
  EXPECT_THAT(lint(b.write()), ElementsAre("softmax-axis softmax"));
}

TEST(Lint, ClassifiersAndRoutersAreNoAttention) {
  Builder b;
  const Value x = b.input("x", {-1, 4}), y = b.input("y", {3, 4});
  const Value weights = b.constant({4, 3}, std::vector<double>(12, 1));
  b.output(
      b.op("MatMul", {b.op("Softmax", {b.op("MatMul", {x, weights})}), y}));
  const Outcome outcome = run_lint({b.write()});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.out, HasSubstr("inconclusive: 0 findings, no attention "
                                     "found, so nothing was checked"));
}

std::string external_mask(const std::string& location) {
  Builder b;
  const Value hidden = b.input("hidden", {-1, -1, kWidth});
  Layer layer;
  layer.before = [&](Builder& builder, Value scores) {
    const Value mask =
        builder.constant({kTokens, kTokens}, triangle(1, 1, 0), kBool);
    builder.make_external(mask, location);
    return builder.op("Where", {mask, scores, builder.scalar(-kInf)}, {},
                      "where_mask");
  };
  b.output(layer(b, hidden));
  return b.write("external.onnx");
}

TEST(Lint, ExternalMasks) {
  std::string bytes;
  for (double value : triangle(1, 1, 0)) bytes += static_cast<char>(value);
  write_file("mask.bin", bytes);
  EXPECT_THAT(lint(external_mask("mask.bin")),
              ElementsAre("mask-triangle where_mask"));
  write_file("short.bin", bytes.substr(1));
  for (const auto& [location, why] :
       {std::pair("absent.bin", "cannot open"),
        std::pair("short.bin", "too short"),
        std::pair("../mask.bin", "not below the model's folder"),
        std::pair("/etc/passwd", "not below the model's folder")}) {
    const Outcome outcome = run_lint({external_mask(location)});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_THAT(outcome.out, HasSubstr("note: tensor '"));
    EXPECT_THAT(outcome.out, HasSubstr(why));
  }
}

TEST(LintCommand, FormatsAndSeveralFiles) {
  const std::string wrong = one_layer({.softmax = axis(2)});
  const Outcome text = run_lint({wrong});
  EXPECT_EQ(text.code, 1);
  EXPECT_THAT(text.out,
              HasSubstr(wrong + ": softmax-axis: node 'softmax'\n  the "
                                "Softmax runs over axis -2 (queries)"));
  EXPECT_THAT(text.out, HasSubstr("  fix: normalise over axis -1"));
  EXPECT_THAT(text.out, HasSubstr("violation: 1 finding, 1 attention seen (1 "
                                  "of plain operators, 0 fused)"));
  const Outcome github = run_lint({wrong, "--format", "github"});
  EXPECT_THAT(github.out, HasSubstr("::error file=" + wrong +
                                    ",title=softmax-axis::node 'softmax'"));
  const Outcome both = run_lint({wrong, "/absent.onnx"});
  EXPECT_EQ(both.code, 2);
  EXPECT_THAT(both.err, HasSubstr("/absent.onnx: No such file"));
  EXPECT_THAT(both.out, HasSubstr("softmax-axis"));
  EXPECT_EQ(run_lint({}).code, 2);
  EXPECT_THAT(run_lint({wrong, "--format", "jsn"}).err,
              HasSubstr("did you mean 'json'?"));
}

// The README's session, line by line.
TEST(LintCommand, PrintsWhatTheReadmeShows) {
  Builder b;
  const Value hidden = b.input("hidden", {-1, -1, kWidth});
  const auto masked = [](std::string name, std::vector<double> allowed,
                         double fill) {
    return [=](Builder& builder, Value scores) {
      const Value mask =
          builder.constant({1, 1, kTokens, kTokens}, allowed, kBool,
                           name.substr(0, 9) + "causal_mask");
      return builder.op("Where", {mask, scores, builder.scalar(fill)}, {},
                        name);
    };
  };
  Layer layer{.before = masked("/layer.0/Where", triangle(0, 1, 0), -1e4),
              .name = "/layer.0/Softmax"};
  Value x = layer(b, hidden);
  layer = {.before = masked("/layer.1/Where", triangle(0, 1, 0), kMin),
           .softmax = axis(2),
           .name = "/layer.1/Softmax",
           .output_name = "/layer.1/MatMul_1"};
  x = layer(b, x);
  layer = {.before = masked("/layer.2/Where", triangle(1, 1, 0), kMin),
           .name = "/layer.2/Softmax"};
  b.output(layer(b, x));
  std::string printed = run_lint({b.write("decoder.onnx")}).out;
  const std::string folder = temporary_folder() + "/";
  for (std::size_t at; (at = printed.find(folder)) != printed.npos;)
    printed.erase(at, folder.size());
  std::ifstream file(ATTNGUARD_TEST_DATA "/../README.md");
  const std::string readme(std::istreambuf_iterator<char>(file), {});
  EXPECT_THAT(readme,
              HasSubstr("$ attnguard lint decoder.onnx\n" + printed + "```"));
}

}  // namespace
}  // namespace attnguard::lint_test
