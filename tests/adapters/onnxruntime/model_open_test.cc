// Opening .onnx files: what their inputs and outputs are for, and what is said
// of files that are no such models.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "adapters/onnxruntime/model.h"
#include "adapters/onnxruntime/model_precision.h"
#include "adapters/onnxruntime/model_roles.h"
#include "tests/adapters/onnxruntime/tiny_model.h"
#include "tests/support/required_engine.h"

namespace attnguard {
namespace {

using lint_test::Builder;
using onnxruntime::find_roles;
using onnxruntime::Port;
using onnxruntime::Ports;
using onnxruntime::Role;
using onnxruntime::Roles;
using testing::AllOf;
using testing::HasSubstr;
using Options = std::map<std::string, std::string>;

Port port(const std::string& name, int type, std::vector<std::int64_t> dims) {
  Port made{name, type, std::move(dims), {}};
  made.dim_names.resize(made.dims.size());
  return made;
}

const Port kIds = port("input_ids", 7, {-1, -1});
const Port kLogits = port("logits", 1, {-1, -1, 50});

// Two layers as optimum exports them.
Ports optimum() {
  Ports ports{{kIds, port("attention_mask", 7, {-1, -1}),
               port("position_ids", 7, {-1, -1})},
              {kLogits}};
  for (const char* layer : {"0", "1"})
    for (const char* what : {".key", ".value"}) {
      const std::string suffix = std::string(".") + layer + what;
      ports.inputs.push_back(
          port("past_key_values" + suffix, 1, {-1, 2, -1, 8}));
      ports.outputs.push_back(port("present" + suffix, 1, {-1, 2, -1, 8}));
    }
  return ports;
}

TEST(OnnxModelRoles, FindsWhatOptimumWrites) {
  const Result<Roles> roles = find_roles(optimum(), {});
  ASSERT_TRUE(roles.ok()) << roles.status().message();
  EXPECT_EQ(roles.value().tokens.name, "input_ids");
  EXPECT_EQ(roles.value().logits.name, "logits");
  ASSERT_EQ(roles.value().sides.size(), 2u);
  EXPECT_EQ(roles.value().sides[0].role, Role::kAttentionMask);
  EXPECT_EQ(roles.value().sides[1].role, Role::kPositionIds);
  ASSERT_EQ(roles.value().cache.size(), 4u);
  const auto& tensor = roles.value().cache[3];
  EXPECT_EQ(tensor.past.name, "past_key_values.1.value");
  EXPECT_EQ(tensor.present.name, "present.1.value");
  EXPECT_EQ(tensor.batch_axis, 0u);
  EXPECT_EQ(tensor.length_axis, 2u);
  EXPECT_THAT(tensor.dims, testing::ElementsAre(1, 2, 0, 8));
}

TEST(OnnxModelRoles, FindsOtherNamesAndAxes) {
  Ports ports{
      {port("ids", 6, {-1, -1}), port("past_0", 10, {2, -1, 4, -1, 8}),
       port("past_key_1", 1, {1, 4, 8, -1}),
       port("past_sequence_length", 6, {1}), port("use_cache_branch", 9, {1})},
      {port("scores", 10, {-1, -1, 50}),
       port("present_0", 10, {2, -1, 4, -1, 8}),
       port("present_key_1", 1, {1, 4, 8, -1})}};
  const Result<Roles> roles = find_roles(ports, {});
  ASSERT_TRUE(roles.ok()) << roles.status().message();
  EXPECT_EQ(roles.value().tokens.name, "ids");
  EXPECT_EQ(roles.value().logits.name, "scores");
  ASSERT_EQ(roles.value().cache.size(), 2u);
  EXPECT_EQ(roles.value().cache[0].batch_axis, 1u);
  EXPECT_EQ(roles.value().cache[0].length_axis, 3u);
  EXPECT_EQ(roles.value().cache[1].length_axis, 3u);  // Keys turned.
  ASSERT_EQ(roles.value().sides.size(), 2u);
  EXPECT_EQ(roles.value().sides[0].role, Role::kPastLength);
  EXPECT_EQ(roles.value().sides[1].role, Role::kUseCacheBranch);
}

TEST(OnnxModelRoles, OptionsNameWhatIsUnclear) {
  Ports ports{{port("a", 7, {-1, -1}), port("b", 7, {-1, -1}),
               port("seen", 7, {-1, -1}), port("kv_in", 1, {-1, -1, -1, -1})},
              {port("x", 1, {-1, -1, 50}), port("y", 1, {-1, -1, 50}),
               port("kv_out", 1, {-1, -1, -1, -1})}};
  const Options options = {
      {"input", "b"},    {"logits", "y"},       {"attention_mask", "seen"},
      {"past", "kv_in"}, {"present", "kv_out"}, {"position_ids", "a"},
      {"kv_heads", "2"}, {"head_dim", "8"}};
  const Result<Roles> roles = find_roles(ports, options);
  ASSERT_TRUE(roles.ok()) << roles.status().message();
  EXPECT_EQ(roles.value().tokens.name, "b");
  EXPECT_EQ(roles.value().logits.name, "y");
  ASSERT_EQ(roles.value().sides.size(), 2u);
  EXPECT_EQ(roles.value().sides[0].port.name, "a");
  EXPECT_EQ(roles.value().sides[1].port.name, "seen");
  ASSERT_EQ(roles.value().cache.size(), 1u);
  EXPECT_THAT(roles.value().cache[0].dims, testing::ElementsAre(1, 2, 0, 8));
}

struct Unclear {
  const char* message;
  Ports ports;
  Options options = {};
};

TEST(OnnxModelRoles, UnclearModelsAreListed) {
  const auto with = [](Port more, std::vector<Port> outputs = {}) {
    Ports ports = optimum();
    ports.inputs.push_back(std::move(more));
    for (Port& output : outputs) ports.outputs.push_back(std::move(output));
    return ports;
  };
  for (const Unclear& unclear :
       {Unclear{"no input holds tokens",
                {{port("pixels", 1, {-1, 3, -1, -1})}, {kLogits}}},
        Unclear{"several inputs may hold the tokens",
                {{port("a", 7, {-1, -1}), port("b", 7, {-1, -1})}, {kLogits}}},
        Unclear{"must be int64 or int32 [batch, sequence]",
                {{port("input", 1, {-1, -1})}, {kLogits}}},
        Unclear{"no such name; did you mean 'input_ids'?",
                optimum(),
                {{"input", "input_idx"}}},
        Unclear{"what is the input encoder_hidden_states float [?, ?, 64] for?",
                with(port("encoder_hidden_states", 1, {-1, -1, 64}))},
        Unclear{
            "has an unusual number of axes; a mask of scores",
            {{kIds, port("attention_mask", 1, {-1, 1, -1, -1})}, {kLogits}}},
        Unclear{"is not [batch, heads, length, channels]",
                with(port("past_conv", 1, {-1, 16}))},
        Unclear{"has a fixed length",
                with(port("past_key_values.2.key", 1, {1, 2, 64, 8}))},
        Unclear{"give kv_heads=N and head_dim=N",
                with(port("past_key_values.2.key", 1, {-1, -1, -1, -1}))},
        Unclear{"no output present.2.key replaces",
                with(port("past_key_values.2.key", 1, {-1, 2, -1, 8}))},
        Unclear{"has another type than its input",
                with(port("past_key_values.2.key", 1, {-1, 2, -1, 8}),
                     {port("present.2.key", 10, {-1, 2, -1, 8})})},
        Unclear{"no output holds logits",
                {{kIds}, {port("last_hidden_state", 1, {-1, -1, 64})}}},
        Unclear{
            "several outputs may be the logits",
            {{kIds}, {port("x", 1, {-1, -1, 50}), port("y", 1, {-1, -1, 50})}}},
        Unclear{"must be float [batch, sequence, vocabulary]",
                {{kIds}, {port("logits", 7, {-1, -1, 50})}}}}) {
    const Result<Roles> roles = find_roles(unclear.ports, unclear.options);
    ASSERT_FALSE(roles.ok()) << unclear.message;
    EXPECT_THAT(roles.status().message(),
                AllOf(HasSubstr(unclear.message), HasSubstr("  inputs:\n"),
                      HasSubstr("  outputs:\n")));
  }
}

struct BadOption {
  const char* message;
  Options options;
};

TEST(OnnxModelOptions, NamesWhatIsWrong) {
  const std::string file = TinyModel{}.write();
  for (const BadOption& bad :
       {BadOption{"unknown option 'thread'; did you mean 'threads'?",
                  {{"thread", "1"}}},
        BadOption{"threads= expects 1 to 512, not '0'", {{"threads", "0"}}},
        BadOption{"sequences= expects 1 to 4096, not 'x'",
                  {{"sequences", "x"}}},
        BadOption{"roundoff=fp17 is not known; did you mean 'fp16'?",
                  {{"roundoff", "fp17"}}},
        BadOption{"optimization=al is not known; did you mean 'all'?",
                  {{"optimization", "al"}}},
        BadOption{"version=9.9.9 is not in", {{"version", "9.9.9"}}}}) {
    const Result<Model> model = open_onnx_model(file, bad.options);
    ASSERT_FALSE(model.ok()) << bad.message;
    EXPECT_THAT(model.status().message(),
                AllOf(testing::StartsWith(file), HasSubstr(bad.message)));
  }
}

TEST(OnnxModelOptions, SetWhatTheFileLeavesOpen) {
  const Result<Model> model =
      open_onnx_model(TinyModel{}.write(), {{"context", "64"},
                                            {"sequences", "9"},
                                            {"roundoff", "int8"},
                                            {"optimization", "none"},
                                            {"threads", "1"}});
  ATTNGUARD_SKIP_WITHOUT("onnxruntime", model);
  EXPECT_EQ(model.value().context_length, 64);
  EXPECT_EQ(model.value().max_sequences, 9);
  EXPECT_EQ(model.value().roundoff, 0x1p-8);
  EXPECT_THAT(model.value().description, HasSubstr("no cache"));
}

TEST(OnnxModelOptions, ANamedInputIsTaken) {
  const TinyModel tiny{.tokens_name = "text", .logits_name = "next"};
  const Result<Model> model =
      open_onnx_model(tiny.write(), {{"input", "text"}, {"logits", "next"}});
  ATTNGUARD_SKIP_WITHOUT("onnxruntime", model);
  EXPECT_THAT(model.value().description,
              HasSubstr("text int64 [n2, n3] to next float [n2, n3, 37]"));
}

TEST(OnnxModelFile, SaysWhatIsWrongWithIt) {
  const Result<Model> whole = open_onnx_model(TinyModel{}.write(), {});
  ATTNGUARD_SKIP_WITHOUT("onnxruntime", whole);
  const std::string good = TinyModel{}.build().bytes();
  struct Bad {
    const char* message;
    std::string file;
    StatusCode code = StatusCode::kInvalidArgument;
  };
  Builder external(17);
  const auto tokens = external.input("input_ids", {-2, -3}, 7);
  const auto table =
      external.constant({37, 8}, std::vector<double>(37 * 8, 0.5));
  external.output(external.op("Gather", {table, tokens}), "logits",
                  {-2, -3, 8});
  external.make_external(table, "no_such_file.bin");
  for (const Bad& bad :
       {Bad{"there is no such file", "/nowhere/model.onnx", StatusCode::kIo},
        Bad{"the file cannot be read", "/tmp", StatusCode::kIo},
        Bad{"CreateSession", lint_test::write_file("empty.onnx", "")},
        Bad{"CreateSession",
            lint_test::write_file("text.onnx", "this is no model")},
        Bad{"CreateSession", lint_test::write_file(
                                 "half.onnx", good.substr(0, good.size() / 2))},
        Bad{"no_such_file.bin", external.write("external.onnx")}}) {
    const Result<Model> model = open_onnx_model(bad.file, {});
    ASSERT_FALSE(model.ok()) << bad.file;
    EXPECT_EQ(model.status().code(), bad.code);
    EXPECT_THAT(model.status().message(), HasSubstr(bad.message));
  }
}

// Cut off, or with bytes changed: an error or a model, never a crash.
TEST(OnnxModelFile, SurvivesDamage) {
  const Result<Model> whole = open_onnx_model(TinyModel{}.write(), {});
  ATTNGUARD_SKIP_WITHOUT("onnxruntime", whole);
  const std::string good = TinyModel{}.build().bytes();
  std::size_t refused = 0;
  for (std::size_t i = 0; i < 40; ++i) {
    std::string bad = good;
    if (i % 2 == 0)
      bad.resize(good.size() * i / 40);
    else
      for (std::size_t at = i; at < bad.size(); at += bad.size() / 25)
        bad[at] = static_cast<char>(bad[at] ^ (1 << (i % 8)));
    const Result<Model> model =
        open_onnx_model(lint_test::write_file("damaged.onnx", bad), {});
    if (!model.ok()) ++refused;
  }
  EXPECT_GE(refused, 20u);
}

TEST(OnnxModelFile, AModelOfAnotherKindIsUnclear) {
  const Result<Model> whole = open_onnx_model(TinyModel{}.write(), {});
  ATTNGUARD_SKIP_WITHOUT("onnxruntime", whole);
  Builder b(17);
  b.output(b.op("Relu", {b.input("pixels", {-2, 3, 8, 8})}), "out",
           {-2, 3, 8, 8});
  const Result<Model> model = open_onnx_model(b.write("image.onnx"), {});
  EXPECT_THAT(model.status().message(),
              AllOf(HasSubstr("no input holds tokens"),
                    HasSubstr("pixels float [n2, 3, 8, 8]")));
}

TEST(OnnxModelFile, AFixedLengthBesideACacheIsRefused) {
  const Result<Model> whole = open_onnx_model(TinyModel{}.write(), {});
  ATTNGUARD_SKIP_WITHOUT("onnxruntime", whole);
  const TinyModel tiny{.cache = TinyModel::Cache::kTwo, .length = 8};
  const Result<Model> model = open_onnx_model(tiny.write(), {});
  EXPECT_EQ(model.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(model.status().message(), HasSubstr("8 tokens at a time"));
}

TEST(OnnxModelPrecision, IsThatOfTheCoarsestType) {
  using onnxruntime::model_roundoff;
  EXPECT_EQ(model_roundoff(TinyModel{}.write()), 0x1p-24);
  EXPECT_EQ(model_roundoff(TinyModel{.logits = 10}.write()), 0x1p-11);
  Builder b(17);
  const auto x = b.input("x", {-2, 8});
  b.output(b.op("DynamicQuantizeLinear", {x}));
  EXPECT_EQ(model_roundoff(b.write()), 0x1p-8);
  EXPECT_EQ(model_roundoff("/nowhere"), 0x1p-24);
}

}  // namespace
}  // namespace attnguard
