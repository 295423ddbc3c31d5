// `attnguard tune`: what it measures, what it refuses, what it writes.
#include "ci/tune/tune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ci/cli.h"
#include "guard/check/check.h"
#include "guard/engine/reference.h"
#include "guard/pipeline.h"
#include "guard/policy/policy_yaml.h"
#include "tests/ci/run_words.h"
#include "tests/support/temp_folder.h"

namespace attnguard {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Policy policy_of_lines(std::initializer_list<const char*> lines) {
  Policy policy;
  for (const char* line : lines)
    policy.problems.push_back({Problem::parse(line).value(), {}});
  return policy;
}

const Measurement* find(const Measured& measured, std::string_view check) {
  const auto found =
      std::ranges::find(measured.measurements, check, &Measurement::check);
  return found == measured.measurements.end() ? nullptr : &*found;
}

// The reference whose outputs are off by a relative error.
Engine off_by(double relative) {
  Engine engine{.name = "off"};
  engine.run = [relative](const AttentionCall& call) {
    const Status status = reference_engine().run(call);
    const Problem& problem = *call.problem;
    std::vector<double> row(static_cast<std::size_t>(problem.head_dim_v));
    for (std::int64_t b = 0; b < problem.batch; ++b)
      for (std::int64_t h = 0; h < problem.num_heads; ++h)
        for (std::int64_t i = 0; i < problem.len_q(b); ++i) {
          call.output.load_row(b, h, i, 0, problem.head_dim_v, row.data());
          for (double& value : row) value *= 1 + relative;
          call.output.store_row(b, h, i, 0, problem.head_dim_v, row.data());
        }
    return status;
  };
  return engine;
}

constexpr const char* kSmall =
    "num_heads=2 seq_len=33 head_dim=32 mask=causal_bottom_right";

TEST(Tune, MeasuresAnErrorOfKnownSize) {
  const Measured measured = measure(off_by(1e-4), policy_of_lines({kSmall}),
                                    {.margin = 3, .repeats = 1});
  EXPECT_EQ(measured.engine_error, "");
  const Measurement* sums = find(measured, "row-sum");
  ASSERT_NE(sums, nullptr);
  EXPECT_EQ(sums->dtype, Dtype::kFp32);
  EXPECT_NEAR(sums->error, 1e-4, 1e-6);
  EXPECT_NEAR(sums->tolerance, 3e-4, 2e-5);
  EXPECT_FALSE(sums->auto_holds);
}

TEST(Tune, WhatItWritesHoldsForTheEngine) {
  const Policy policy = policy_of_lines({kSmall});
  const Engine engine = off_by(1e-4);
  const Measured measured =
      measure(engine, policy, {.margin = 2, .repeats = 2});
  Policy tuned = policy;
  SettingsPatch& patch = tuned.patches.emplace_back();
  for (const Measurement& one : measured.measurements)
    patch.tolerances[one.check][one.dtype] = {Tolerance::Kind::kNumber,
                                              one.tolerance};
  RunOptions options;
  options.draw_maps = false;
  for (std::string_view check : tuned_checks())
    options.checks.emplace_back(check);
  EXPECT_EQ(verify(engine, policy, options).verdict, Verdict::kViolation);
  EXPECT_EQ(verify(engine, tuned, options).verdict, Verdict::kPass);
}

TEST(Tune, AnEngineThatIsWrongIsNotTunedAround) {
  Engine leaking{.name = "leaking"};
  leaking.run = [](const AttentionCall& call) {
    Problem wrong = *call.problem;
    wrong.mask = Mask::parse("full").value();
    AttentionCall other = call;
    other.problem = &wrong;
    return reference_engine().run(other);
  };
  const Measured measured =
      measure(leaking, policy_of_lines({kSmall}), {.repeats = 1});
  EXPECT_THAT(measured.defective, Not(IsEmpty()));
  EXPECT_EQ(find(measured, "reference"), nullptr);
}

TEST(Tune, AFailingEngineIsAnError) {
  Engine failing{.name = "failing"};
  failing.run = [](const AttentionCall&) {
    return Status(StatusCode::kEngineFailure, "out of luck");
  };
  EXPECT_THAT(measure(failing, policy_of_lines({kSmall}), {}).engine_error,
              HasSubstr("out of luck"));
}

TEST(Tune, SmallestFaultsGrowWithTheTolerance) {
  Measurement tight;
  tight.check = "row-sum";
  tight.tolerance = 1e-5;
  Measurement loose = tight;
  loose.tolerance = 1e-2;
  find_smallest_faults(tight);
  find_smallest_faults(loose);
  ASSERT_TRUE(tight.mass && loose.mass);
  EXPECT_NEAR(*tight.mass, 1e-5, 1e-6);
  EXPECT_NEAR(*loose.mass, 1e-2, 1e-3);
  // A leak that is paid for by the other weights leaves the sum as it is.
  EXPECT_FALSE(tight.leak);
  Measurement values = tight;
  values.check = "reference";
  find_smallest_faults(values);
  ASSERT_TRUE(values.leak && values.dropped && values.mass);
  EXPECT_LT(*values.leak, 1e-4);
  EXPECT_GT(*values.leak, 1e-7);
}

TEST(Tune, NamesKnownDefectsThatATolerantPolicyHides) {
  const Settings before = default_policy().resolve("builtin:reference");
  const Dtype all[] = {Dtype::kFp32};
  EXPECT_THAT(hidden_defects(reference_engine(), before, before, all),
              IsEmpty());
  Settings after = before;
  for (std::string_view check : tuned_checks())
    after.checks[std::string(check)].tolerances[Dtype::kFp32] = {
        Tolerance::Kind::kNumber, 1e6};
  const auto hidden = hidden_defects(reference_engine(), before, after, all);
  EXPECT_THAT(hidden, Not(IsEmpty()));
  for (const HiddenDefect& one : hidden) EXPECT_FALSE(one.checks.empty());
}

TEST(Tune, MarginsRoundUpToTwoDigits) {
  EXPECT_EQ(with_margin(1.234e-7, 1), 1.3e-7);
  EXPECT_EQ(with_margin(1.5e-3, 2), 3e-3);
  EXPECT_EQ(with_margin(9.99e-5, 1), 1e-4);
  EXPECT_EQ(with_margin(0, 2), 0);
}

class TuneCommand : public testing::Test {
 protected:
  int run(const std::vector<std::string>& words) {
    const Outcome outcome = run_words(words);
    out_ = outcome.out;
    err_ = outcome.err;
    return outcome.code;
  }

  TempFolder folder_;
  std::string out_, err_;
};

TEST_F(TuneCommand, WritesAPolicyThatPasses) {
  const std::string file = folder_.file("tuned.yaml");
  ASSERT_EQ(run({"tune", "--engine", "builtin:tiled", "--problem", kSmall,
                 "--repeats", "2", "--output", file}),
            kExitPass)
      << out_ << err_;
  EXPECT_THAT(out_, HasSubstr("smallest leak"));
  EXPECT_THAT(out_, HasSubstr("known defect"));
  const std::string text = folder_.read("tuned.yaml");
  EXPECT_THAT(text, HasSubstr("# attnguard tune: 2 times the largest error on "
                              "1 problem, 2 seeds from 1"));
  EXPECT_THAT(text, HasSubstr("# largest error "));
  EXPECT_EQ(run({"check", "--engine", "builtin:tiled", "--problem", kSmall,
                 "--policy", file}),
            kExitPass)
      << out_;
}

TEST_F(TuneCommand, ABrokenEngineEndsWithAViolation) {
  EXPECT_EQ(run({"tune", "--engine", "builtin:wrong_axis", "--problem", kSmall,
                 "--output", folder_.file("tuned.yaml")}),
            kExitViolation)
      << out_ << err_;
  EXPECT_THAT(out_, HasSubstr("is violated by more than rounding explains"));
}

TEST_F(TuneCommand, UsageErrorsSayWhatToDo) {
  const std::string file = folder_.file("tuned.yaml");
  EXPECT_EQ(run({"tune", "--output", file}), kExitUsage);
  EXPECT_EQ(run({"tune", "--engine", "builtin:tiled"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("give --output FILE"));
  EXPECT_EQ(run({"tune", "--engine", "builtin:tiled", "--output",
                 "/no/such/folder/tuned.yaml"}),
            kExitUsage);
  EXPECT_THAT(err_, HasSubstr("cannot write the policy to '/no/such/folder/"));
  for (const char* margin : {"0.5", "x", "nan", "1e9"}) {
    EXPECT_EQ(run({"tune", "--engine", "builtin:tiled", "--output", file,
                   "--margin", margin}),
              kExitUsage);
    EXPECT_THAT(err_, HasSubstr("is not a number from 1 to 1000"));
  }
}

}  // namespace
}  // namespace attnguard
