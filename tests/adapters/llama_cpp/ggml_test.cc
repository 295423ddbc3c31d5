#include "adapters/llama_cpp/ggml.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "guard/base/text.h"
#include "tests/adapters/llama_cpp/fp64_error.h"
#include "tests/adapters/llama_cpp/random_call.h"
#include "tests/support/problems.h"
#include "tests/support/required_engine.h"

namespace attnguard {
namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;

// "flash,kv=f16" behind the adapter's name.
EngineSpec spec_of(const std::string& text) {
  EngineSpec spec;
  spec.full = "ggml:" + text;
  const auto pieces = split(text, ',');
  spec.engine = pieces.front();
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    const std::size_t equal = pieces[i].find('=');
    spec.options[std::string(pieces[i].substr(0, equal))] =
        pieces[i].substr(equal + 1);
  }
  return spec;
}

Result<Engine> open(const std::string& text) {
  return kGgmlAdapter.open(spec_of(text));
}

TEST(Ggml, NamesTheNearestEngineOptionAndType) {
  const auto message = [](const char* text) {
    const Result<Engine> engine = open(text);
    EXPECT_FALSE(engine.ok());
    EXPECT_EQ(engine.status().code(), StatusCode::kInvalidArgument);
    return engine.status().message();
  };
  EXPECT_THAT(message("flahs"), HasSubstr("did you mean 'flash'"));
  EXPECT_THAT(message("flash,thread=2"), HasSubstr("did you mean 'threads'"));
  EXPECT_THAT(message("flash,kv=q8"), HasSubstr("did you mean 'q8_0'"));
  EXPECT_THAT(message("flash,threads=0"), HasSubstr("expects 1 to 512"));
}

// A folder of two files named like ggml's libraries, made by `make`, or empty.
std::string folder_with(const char* name, const auto& make) {
  const fs::path folder = fs::path(::testing::TempDir()) / name;
  fs::remove_all(folder);
  fs::create_directories(folder);
  make(folder / "libggml-base.so");
  make(folder / "libggml.so");
  return folder.string();
}

TEST(Ggml, SaysWhereItLookedAndHowToFetch) {
  const std::string empty =
      folder_with("attnguard_ggml_empty", [](const fs::path&) {});
  const Result<Engine> engine = open("flash,path=" + empty);
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(engine.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(engine.status().message(), HasSubstr(empty));
  EXPECT_THAT(engine.status().message(), HasSubstr("ci/fetch_engines.sh"));
}

TEST(Ggml, SaysWhyALibraryDoesNotLoad) {
  const std::string text = folder_with(
      "attnguard_ggml_text",
      [](const fs::path& file) { std::ofstream(file) << "no library"; });
  const Result<Engine> engine = open("flash,path=" + text);
  ASSERT_FALSE(engine.ok());
  const std::string& message = engine.status().message();
  if (message.find("already loaded") != std::string::npos)
    GTEST_SKIP() << "skipped: an earlier test in this process loaded ggml";
  EXPECT_THAT(message, HasSubstr("cannot load " + text + "/libggml-base.so"));
}

TEST(Ggml, NamesTheSymbolThatALibraryLacks) {
  // Any library of the process will do: this one holds omp_get_max_threads.
  Dl_info info;
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&omp_get_max_threads), &info), 0);
  const fs::path other = fs::canonical(info.dli_fname);
  const std::string folder = folder_with(
      "attnguard_ggml_symbols",
      [&](const fs::path& file) { fs::create_symlink(other, file); });
  const Result<Engine> engine = open("flash,path=" + folder);
  ASSERT_FALSE(engine.ok());
  const std::string& message = engine.status().message();
  if (message.find("already loaded") != std::string::npos)
    GTEST_SKIP() << "skipped: an earlier test in this process loaded ggml";
  EXPECT_THAT(message, HasSubstr("has no symbol ggml_log_set"));
}

TEST(Ggml, ListsItsEngines) {
  const std::vector<EngineListing> engines = kGgmlAdapter.list();
  ASSERT_EQ(engines.size(), 2u);
  EXPECT_EQ(engines[0].name, "ggml:flash");
  EXPECT_EQ(engines[1].name, "ggml:softmax");
}

class GgmlEngine : public ::testing::Test {
 protected:
  void SetUp() override {
    const Result<Engine> engine = open("flash");
    ATTNGUARD_SKIP_WITHOUT("ggml", engine);
  }

  static Engine opened(const std::string& text) {
    Result<Engine> engine = open(text);
    EXPECT_TRUE(engine.ok()) << engine.status().message();
    return engine.ok() ? engine.value() : Engine{};
  }
};

const char* const kAccuracyProblems[] = {
    "seq_len=16 head_dim=64",
    "num_heads=4 num_kv_heads=2 seq_len=70 head_dim=64 "
    "mask=causal_bottom_right",
    "num_heads=6 num_kv_heads=2 seq_len=130 head_dim=128 "
    "mask=causal_bottom_right+sliding_window(left=40,right=0)",
    "batch=2 num_heads=4 num_kv_heads=1 seq_len_q=33,5 seq_len_kv=65,17 "
    "head_dim_qk=64 head_dim_v=32 mask=causal_bottom_right",
    "batch=2 num_heads=2 seq_len_q=64 seq_len_kv=100 head_dim=40 "
    "mask=causal_top_left",
    "num_heads=8 num_kv_heads=2 seq_len_q=1 seq_len_kv=700 head_dim=128",
    "batch=3 num_heads=2 seq_len_q=1 seq_len_kv=90,1,33 head_dim=64 "
    "mask=causal_bottom_right",
    "num_heads=2 seq_len=80 head_dim=64 mask=prefix_lm(prefix=9) layout=bshd",
    "num_heads=2 seq_len_q=9 seq_len_kv=31 head_dim=64 softmax_scale=0.5 "
    "layout=sbhd out_dtype=fp32",
};

struct EngineDtype {
  const char* engine;
  const char* dtype;
};

const EngineDtype kEngineDtypes[] = {
    {"flash", "fp32"},
    {"flash", "fp16"},
    {"flash", "bf16"},
    {"flash,kv=f16", "fp32"},
    {"flash,kv=bf16", "fp32"},
    {"flash,kv=q8_0", "fp32"},
    {"flash,kv=q8_0", "fp16"},
    {"flash,k=q8_0,v=f16", "fp16"},
    {"flash,k=f16,v=f32", "fp32"},
    {"softmax", "fp32"},
    {"softmax", "fp16"},
    {"softmax", "bf16"},
    {"softmax,kv=f16", "fp32"},
    {"softmax,kv=bf16", "fp32"},
    {"softmax,k=q8_0", "fp32"},
};

TEST_F(GgmlEngine, StaysWithinTheErrorItStates) {
  for (const EngineDtype& one : kEngineDtypes) {
    const Engine engine = opened(std::string(one.engine) + ",threads=1");
    double worst = 0;
    int ran = 0;
    for (const char* line : kAccuracyProblems) {
      RandomCall tensors(problem_of(std::string(line) + " dtype=" + one.dtype));
      const std::string reason = unsupported_reason(engine, tensors.problem());
      if (!reason.empty()) continue;
      ++ran;
      const Status status = run_engine(engine, tensors.call());
      ASSERT_TRUE(status.ok()) << status.message();
      const double ratio =
          worst_ratio(tensors.call(), numerics_of(engine, tensors.problem()));
      EXPECT_LE(ratio, 1) << one.engine << " on " << tensors.problem().text();
      worst = std::max(worst, ratio);
    }
    EXPECT_GE(ran, 5) << one.engine;
    // The statement is not so wide that anything passes.
    EXPECT_GT(worst, 1e-3) << one.engine << " " << one.dtype;
  }
}

// Both of flash's parallel divisions: by row, and (one query, 512 keys or
// more) by key with a merge at the end.
TEST_F(GgmlEngine, RepeatsItselfBitwise) {
  for (const char* text : {"flash,threads=2", "softmax,threads=2"}) {
    const Engine engine = opened(text);
    for (const char* line : {kAccuracyProblems[1], kAccuracyProblems[5]}) {
      const Problem problem = problem_of(std::string(line) + " dtype=fp16");
      RandomCall first(problem);
      RandomCall second(problem);
      ASSERT_TRUE(run_engine(engine, first.call()).ok());
      EXPECT_LE(worst_ratio(first.call(), numerics_of(engine, problem)), 1);
      for (int repeat = 0; repeat < 2; ++repeat) {
        ASSERT_TRUE(run_engine(engine, second.call()).ok());
        EXPECT_EQ(first.output_bytes(), second.output_bytes()) << line;
      }
    }
  }
}

TEST_F(GgmlEngine, LeavesPaddingRowsAlone) {
  const Engine engine = opened("flash,threads=1");
  RandomCall tensors(problem_of(
      "batch=2 seq_len_q=4,2 seq_len_kv=6,3 head_dim=64 dtype=fp32"));
  ASSERT_TRUE(run_engine(engine, tensors.call()).ok());
  const TensorView& output = tensors.call().output;
  EXPECT_FALSE(is_poison(Dtype::kFp32, output.at(1, 0, 1)));
  for (std::int64_t c = 0; c < 64; ++c)
    EXPECT_TRUE(is_poison(Dtype::kFp32, output.at(1, 0, 2, c)));
}

TEST_F(GgmlEngine, IgnoresFinitePadding) {
  for (const char* text : {"flash,threads=1", "softmax,threads=1"}) {
    const Engine engine = opened(text);
    RandomCall tensors(problem_of(
        "batch=2 seq_len_q=70 seq_len_kv=70,33 head_dim=64 dtype=fp32"));
    ASSERT_TRUE(run_engine(engine, tensors.call()).ok());
    const std::vector<std::byte> before = tensors.output_bytes();
    tensors.set_key_slot(1, 50, -1e4);
    ASSERT_TRUE(run_engine(engine, tensors.call()).ok());
    EXPECT_EQ(before, tensors.output_bytes()) << text;
  }
}

TEST_F(GgmlEngine, FlashGivesZeroToRowsWithNoKey) {
  const Engine engine = opened("flash,threads=1");
  for (const char* line :
       {"seq_len_q=70 seq_len_kv=5 head_dim=64 mask=causal_bottom_right",
        "seq_len_q=3 seq_len_kv=0 head_dim=64",
        "batch=2 seq_len_q=3 seq_len_kv=0,9 head_dim=64"}) {
    RandomCall tensors(problem_of(line));
    ASSERT_TRUE(run_engine(engine, tensors.call()).ok()) << line;
    EXPECT_EQ(max_abs(row_of(tensors.call().output, 0, 0, 0)), 0) << line;
  }
}

TEST_F(GgmlEngine, AcceptsACallWithNoQueries) {
  RandomCall tensors(problem_of("seq_len_q=0 seq_len_kv=5 head_dim=64"));
  EXPECT_TRUE(run_engine(opened("flash"), tensors.call()).ok());
}

TEST_F(GgmlEngine, SaysWhatItCannotRun) {
  const auto reason = [](const char* engine, const char* line) {
    return unsupported_reason(opened(engine), problem_of(line));
  };
  EXPECT_THAT(reason("flash,kv=q8_0", "head_dim_qk=40 head_dim_v=64"),
              HasSubstr("head_dim_qk to be a multiple of 32, not 40"));
  EXPECT_THAT(reason("flash,kv=q8_0", "head_dim_qk=64 head_dim_v=40"),
              HasSubstr("head_dim_v to be a multiple of 32"));
  EXPECT_THAT(reason("softmax,kv=q8_0", "head_dim=64"),
              HasSubstr("needs ggml:flash"));
  EXPECT_THAT(reason("softmax",
                     "seq_len_q=4 seq_len_kv=2 head_dim=64 "
                     "mask=causal_bottom_right"),
              HasSubstr("no allowed key"));
  EXPECT_NE(reason("flash", "head_dim=64 dtype=fp64"), "");
  EXPECT_EQ(reason("flash,kv=q8_0", "head_dim=64"), "");
}

// With one query the flash kernel sums fp16 values in fp16; it has to say so.
TEST_F(GgmlEngine, SaysWhereItSumsInFp16) {
  const Engine engine = opened("flash,threads=1");
  for (const char* line :
       {"seq_len_q=1 seq_len_kv=300 head_dim=64 dtype=fp16 out_dtype=fp32",
        "seq_len_q=128 seq_len_kv=300 head_dim=64 dtype=fp16 out_dtype=fp32"}) {
    RandomCall probe(problem_of(line));
    probe.set_all(TensorRole::kQuery, 0);
    probe.set_all(TensorRole::kValue, 0x1p-12);
    probe.set_key_slot(0, 0, 1);
    ASSERT_TRUE(run_engine(engine, probe.call()).ok());
    const double exact = (1 + 299 * 0x1p-12) / 300;
    const double seen = row_of(probe.call().output, 0, 0, 0)[0];
    const bool loses = std::abs(seen - exact) > 1e-3 * exact;
    EXPECT_EQ(numerics_of(engine, probe.problem()).accumulator,
              loses ? Dtype::kFp16 : Dtype::kFp32)
        << line;
  }
}

}  // namespace
}  // namespace attnguard
