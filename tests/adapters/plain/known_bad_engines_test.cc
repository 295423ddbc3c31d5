// Every known-bad engine really is bad, and only where its defect can show.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "adapters/plain/builtin.h"
#include "adapters/plain/builtin_table.h"
#include "tests/engine/test_tensors.h"

namespace attnguard {
namespace {

using ::testing::HasSubstr;

Engine open_builtin(const std::string& name) {
  Result<Engine> engine = kBuiltinAdapter.open({"builtin:" + name, name, {}});
  if (engine.ok()) return engine.value();
  ADD_FAILURE() << engine.status().message();
  return {};
}

struct OutputDefect {
  const char* engine;
  const char* shows_on;  // Problem on which the output leaves the bound.
  const char* hides_on;  // Problem on which it cannot.
};

constexpr OutputDefect kOutputDefects[] = {
    {"wrong_axis", "seq_len=16 head_dim=8 mask=causal_bottom_right",
     "seq_len=16 head_dim=8 mask=sliding_window(left=0,right=0)"},
    {"no_mask", "seq_len=16 head_dim=8 mask=causal_top_left",
     "seq_len=16 head_dim=8"},
    {"causal_off_by_one", "seq_len=16 head_dim=8 mask=causal_bottom_right",
     "seq_len_q=1 seq_len_kv=16 head_dim=8 mask=causal_bottom_right"},
    {"mask_after_softmax", "seq_len=16 head_dim=8 mask=causal_bottom_right",
     "seq_len=16 head_dim=8"},
    {"drops_last_key", "seq_len=16 head_dim=8",
     "seq_len=16 head_dim=8 mask=sliding_window(left=0,right=0)"},
    {"drops_last_tile", "seq_len=40 head_dim=8", "seq_len=64 head_dim=8"},
    {"drops_last_tile", "seq_len=33 head_dim=8", "seq_len=31 head_dim=8"},
    {"wrong_kv_head", "num_heads=6 num_kv_heads=2 seq_len=8 head_dim=8",
     "num_heads=6 num_kv_heads=6 seq_len=8 head_dim=8"},
    {"wrong_kv_head", "num_heads=4 num_kv_heads=2 seq_len=8 head_dim=8",
     "num_heads=4 num_kv_heads=1 seq_len=8 head_dim=8"},
    {"wrong_scale", "seq_len=16 head_dim=8",
     "seq_len=16 head_dim_qk=1 head_dim_v=8"},
    {"stale_row", "seq_len=16 head_dim=8", "seq_len_q=0 seq_len_kv=16"},
};

// Faults that the output of one call does not show; tests of their own below.
const std::set<std::string> kOtherDefects = {"overwrites_input", "overruns",
                                             "nondeterministic", "throws"};

TEST(KnownBadEngines, AreEachCoveredByATestHere) {
  std::set<std::string> covered = kOtherDefects;
  for (const OutputDefect& defect : kOutputDefects)
    covered.insert(defect.engine);
  std::set<std::string> listed;
  for (const BuiltinEngine* engine : all_builtin_engines())
    if (engine->summary.substr(0, 11) == "known bad: ")
      listed.insert(std::string(engine->name));
  EXPECT_EQ(covered, listed);
}

TEST(KnownBadEngines, LeaveTheBoundWhereTheDefectShows) {
  for (const OutputDefect& defect : kOutputDefects) {
    TestTensors tensors(problem_of(defect.shows_on));
    EXPECT_NE(outside_bound(tensors, open_builtin(defect.engine)), "")
        << defect.engine << " on " << defect.shows_on;
  }
}

TEST(KnownBadEngines, MatchTheReferenceWhereTheDefectCannotShow) {
  for (const OutputDefect& defect : kOutputDefects) {
    TestTensors tensors(problem_of(defect.hides_on));
    EXPECT_EQ(outside_bound(tensors, open_builtin(defect.engine)), "");
  }
}

TEST(WrongAxis, MakesColumnsSumToOne) {
  // Values are unit vectors: the output is the weights.
  TestTensors tensors(problem_of(
      "seq_len=8 head_dim_qk=4 head_dim_v=8 mask=causal_bottom_right"));
  tensors.fill(TensorRole::kValue,
               [](auto, auto, std::int64_t j, std::int64_t c) {
                 return j == c ? 1.0 : 0.0;
               });
  tensors.run(open_builtin("wrong_axis"));
  for (std::int64_t j = 0; j < 8; ++j) {
    double column = 0;
    for (std::int64_t i = 0; i < 8; ++i) column += tensors.output(0, 0, i, j);
    EXPECT_NEAR(column, 1.0, 1e-6) << j;
  }
}

TEST(WrongAxis, LetsEveryLaterTokenReachTheFirstRow) {
  TestTensors tensors(
      problem_of("seq_len=5 head_dim=8 mask=causal_bottom_right"));
  const Engine engine = open_builtin("wrong_axis");
  const std::vector<double> before = tensors.run(engine);
  for (std::int64_t token = 1; token < 5; ++token) {
    const double fresh = 0.75;
    tensors.view(TensorRole::kQuery).store_row(0, 0, token, 0, 1, &fresh);
    const std::vector<double> after = tensors.run(engine);
    EXPECT_NE(before[0], after[0]) << token;
  }
}

TEST(MaskAfterSoftmax, LosesMassWithoutReadingLaterValues) {
  TestTensors tensors(
      problem_of("seq_len=8 head_dim=4 mask=causal_bottom_right"));
  tensors.fill(TensorRole::kValue, [](auto...) { return 1.0; });
  tensors.run(open_builtin("mask_after_softmax"));
  for (std::int64_t i = 0; i < 7; ++i)
    EXPECT_LT(tensors.output(0, 0, i), 0.999) << i;
  EXPECT_NEAR(tensors.output(0, 0, 7), 1.0, 1e-6);
}

TEST(StaleRow, LeavesOnlyTheLastRowUnwritten) {
  TestTensors tensors(
      problem_of("batch=2 num_heads=2 seq_len_q=5,3 seq_len_kv=6 head_dim=4"));
  tensors.run(open_builtin("stale_row"));
  const TensorView out = tensors.view(TensorRole::kOutput);
  for (std::int64_t b = 0; b < 2; ++b)
    for (std::int64_t i = 0; i < tensors.problem().len_q(b); ++i)
      EXPECT_EQ(is_poison(out.dtype, out.at(b, 1, i)),
                i == tensors.problem().len_q(b) - 1);
}

TEST(OverwritesInput, ChangesTheQueryAndNothingElse) {
  TestTensors tensors(problem_of("seq_len=9 head_dim=16"));
  const auto query = tensors.bytes(TensorRole::kQuery);
  const auto key = tensors.bytes(TensorRole::kKey);
  const std::vector<double> right = tensors.run(open_builtin("reference"));
  const std::vector<double> seen =
      tensors.run(open_builtin("overwrites_input"));
  EXPECT_NE(query, tensors.bytes(TensorRole::kQuery));
  EXPECT_EQ(key, tensors.bytes(TensorRole::kKey));
  // The scale is 1/4, so that scaling the query rounds nothing.
  EXPECT_EQ(right, seen);
}

TEST(OverwritesInput, LeavesTheQueryAloneWhenTheScaleIsOne) {
  TestTensors tensors(problem_of("seq_len=9 head_dim=16 softmax_scale=1"));
  const auto query = tensors.bytes(TensorRole::kQuery);
  tensors.run(open_builtin("overwrites_input"));
  EXPECT_EQ(query, tensors.bytes(TensorRole::kQuery));
}

TEST(Overruns, ChangesExactlyTheElementBehindTheOutput) {
  for (const char* line : {"seq_len=3 head_dim=4",
                           "seq_len=3 head_dim=4 "
                           "layout=sbhd dtype=fp16"}) {
    TestTensors tensors(problem_of(line));
    tensors.run(open_builtin("reference"));
    const auto right = tensors.bytes(TensorRole::kOutput);
    tensors.run(open_builtin("overruns"));
    const auto seen = tensors.bytes(TensorRole::kOutput);
    const auto size = dtype_size(tensors.problem().dtype);
    const auto end = static_cast<std::size_t>(
                         tensors.problem().extent(TensorRole::kOutput)) *
                     size;
    ASSERT_LE(end + size, seen.size());
    for (std::size_t at = 0; at < seen.size(); ++at) {
      if (at < end || at >= end + size) {
        EXPECT_EQ(right[at], seen[at]) << at;
      }
    }
    EXPECT_FALSE(is_poison(tensors.problem().dtype, seen.data() + end));
  }
}

TEST(Nondeterministic, DiffersFromCallToCallWithinTheBound) {
  for (const char* dtype : {"fp64", "fp32"}) {
    TestTensors tensors(
        problem_of(std::string("seq_len=32 head_dim=16 dtype=") + dtype));
    const Engine engine = open_builtin("nondeterministic");
    EXPECT_NE(tensors.run(engine), tensors.run(engine)) << dtype;
    EXPECT_EQ(outside_bound(tensors, engine), "");
    EXPECT_TRUE(engine.capabilities.deterministic);
  }
}

TEST(Nondeterministic, RepeatsSumsThatAreExact) {
  TestTensors tensors(problem_of("seq_len=32 head_dim=16"));
  tensors.fill(TensorRole::kQuery, [](auto...) { return 0.0; });
  tensors.fill(TensorRole::kValue,
               [](auto, auto, std::int64_t j, std::int64_t c) {
                 return (j + c) % 3 ? 1.0 : -1.0;
               });
  const Engine engine = open_builtin("nondeterministic");
  EXPECT_EQ(tensors.run(engine), tensors.run(engine));
}

TEST(Throws, BecomesAnEngineFailureThatSaysWhy) {
  TestTensors tensors(problem_of("seq_len=3 head_dim=4"));
  const Status status = run_engine(open_builtin("throws"), tensors.call());
  EXPECT_EQ(status.code(), StatusCode::kEngineFailure);
  EXPECT_THAT(status.message(), HasSubstr("this engine always throws"));
  EXPECT_THAT(status.message(), HasSubstr("builtin:throws"));
}

TEST(BuiltinAdapter, ListsEveryEngineUnderTheNameItOpens) {
  const std::vector<EngineListing> listings = kBuiltinAdapter.list();
  EXPECT_EQ(listings.size(), all_builtin_engines().size());
  std::set<std::string> names;
  for (const EngineListing& listing : listings) {
    ASSERT_EQ(listing.name.substr(0, 8), "builtin:");
    const Engine engine = open_builtin(listing.name.substr(8));
    EXPECT_EQ(engine.name, listing.name);
    EXPECT_EQ(engine.description, listing.summary);
    EXPECT_TRUE(engine.run);
    EXPECT_EQ(listing.summary.find('\n'), std::string::npos);
    names.insert(listing.name);
  }
  EXPECT_EQ(names.size(), listings.size());
}

TEST(BuiltinAdapter, NamesTheNearestEngineForAnUnknownOne) {
  const Result<Engine> engine =
      kBuiltinAdapter.open({"builtin:tilled", "tilled", {}});
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(engine.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(engine.status().message(), HasSubstr("did you mean 'tiled'?"));
}

TEST(BuiltinAdapter, RefusesOptions) {
  const Result<Engine> engine = kBuiltinAdapter.open(
      {"builtin:tiled,tile=32", "tiled", {{"tile", "32"}}});
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(engine.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(engine.status().message(), HasSubstr("'tile'"));
}

}  // namespace
}  // namespace attnguard
