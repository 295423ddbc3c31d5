// Soft-cap, ALiBi, sinks and empty rows in the reference, against the formulas
// written out, and the tiled engine on every layout against the reference.
#include <gtest/gtest.h>

#include <cmath>

#include "guard/engine/reference.h"
#include "guard/engine/row_steps.h"
#include "guard/probe/execute.h"
#include "guard/probe/random.h"
#include "tests/support/engines.h"

namespace attnguard {
namespace {

KeyRanges first_keys(std::int64_t count) {
  KeyRanges keys;
  keys.append(0, count);
  return keys;
}

TEST(RowSteps, SoftcapIsTanhOfTheScore) {
  double scores[] = {0, 3, -100};
  cap_scores(2, first_keys(3), scores);
  EXPECT_EQ(scores[0], 0);
  EXPECT_DOUBLE_EQ(scores[1], 2 * std::tanh(1.5));
  EXPECT_DOUBLE_EQ(scores[2], -2);
}

TEST(RowSteps, AlibiFallsWithTheDistanceOnBothSides) {
  double scores[] = {0, 0, 0, 0};
  add_alibi(0.5, 2, first_keys(4), scores);
  EXPECT_DOUBLE_EQ(scores[0], -1);
  EXPECT_DOUBLE_EQ(scores[1], -0.5);
  EXPECT_DOUBLE_EQ(scores[2], 0);
  EXPECT_DOUBLE_EQ(scores[3], -0.5);
}

TEST(RowSteps, ASinkTakesItsShareAndCountsInTheLse) {
  double scores[] = {std::log(2.0), std::log(3.0)};
  const double lse = softmax_row(first_keys(2), scores, std::log(5.0));
  EXPECT_NEAR(scores[0], 0.2, 1e-15);
  EXPECT_NEAR(scores[1], 0.3, 1e-15);
  EXPECT_NEAR(lse, std::log(10.0), 1e-15);
}

TEST(RowSteps, WithoutKeysTheSinkIsAllThereIs) {
  double none = 7;
  EXPECT_EQ(softmax_row(KeyRanges{}, &none, 1.5), 1.5);
  EXPECT_EQ(softmax_row(KeyRanges{}, &none),
            -std::numeric_limits<double>::infinity());
  EXPECT_EQ(none, 7) << "nothing is written";
}

// One call of the engine on random inputs.
struct Called {
  std::vector<double> output;  // of every row that the problem has
  std::vector<double> lse;
  std::vector<MemoryFault> faults;
};

Called call_of(const Engine& engine, const Problem& problem, bool ask_lse) {
  Plan plan(problem.head_dim_v);
  plan.request(std::make_shared<RandomScores>(problem, 7),
               std::make_shared<RandomValues>(problem, 7),
               {.ask_lse = ask_lse});
  Executor executor(engine, problem);
  EXPECT_TRUE(executor.allocate().ok());
  Observation seen;
  const Status status = executor.run(plan, 0, seen);
  EXPECT_TRUE(status.ok()) << status.message();
  Called called;
  called.faults = seen.memory_faults;
  std::vector<double> row(static_cast<std::size_t>(problem.head_dim_v));
  for (std::int64_t b = 0; b < problem.batch; ++b)
    for (std::int64_t h = 0; h < problem.num_heads; ++h)
      for (std::int64_t i = 0; i < problem.len_q(b); ++i) {
        seen.output.load_row(b, h, i, 0, problem.head_dim_v, row.data());
        called.output.insert(called.output.end(), row.begin(), row.end());
        double lse = 0;
        if (!ask_lse) continue;
        seen.softmax_lse.load_row(b, h, i, 0, 1, &lse);
        called.lse.push_back(lse);
      }
  return called;
}

class Variants : public testing::TestWithParam<std::string> {};

TEST_P(Variants, TiledAgreesWithTheReference) {
  const Problem problem = problem_of(GetParam());
  const Called expected = call_of(builtin("reference"), problem, true);
  const Called observed = call_of(builtin("tiled"), problem, true);
  EXPECT_TRUE(observed.faults.empty());
  ASSERT_EQ(observed.output.size(), expected.output.size());
  for (std::size_t n = 0; n < expected.output.size(); ++n) {
    if (std::isnan(expected.output[n]))
      EXPECT_TRUE(std::isnan(observed.output[n])) << n;
    else
      EXPECT_NEAR(observed.output[n], expected.output[n], 2e-5) << n;
  }
  for (std::size_t n = 0; n < expected.lse.size(); ++n)
    if (std::isfinite(expected.lse[n]))
      EXPECT_NEAR(observed.lse[n], expected.lse[n], 2e-5) << n;
    else
      EXPECT_EQ(observed.lse[n], expected.lse[n]) << n;
}

// A layout only says where tokens lie: the padded call of the same tokens
// gives the same bits.
TEST_P(Variants, LayoutsDoNotChangeABit) {
  const Problem problem = problem_of(GetParam());
  Problem padded = problem;
  padded.packed = false;
  padded.packed_padding = 0;
  padded.block_size = 0;
  padded.shared_prefix = 0;
  padded.mask_form = MaskForm::kImplied;
  if (padded == problem || problem.shared_prefix > 0) return;
  for (const char* engine : {"reference", "tiled"})
    EXPECT_EQ(call_of(builtin(engine), problem, false).output,
              call_of(builtin(engine), padded, false).output)
        << engine;
}

INSTANTIATE_TEST_SUITE_P(
    Engines, Variants,
    testing::Values(
        "num_heads=2 seq_len=70 head_dim=16 softcap=0.5 mask=causal_top_left",
        "num_heads=3 seq_len_q=5 seq_len_kv=70 head_dim=16 alibi_max_bias=8 "
        "mask=causal_bottom_right",
        "num_heads=3 seq_len=40 head_dim=16 alibi_max_bias=8 mask=full",
        "num_heads=2 seq_len=70 head_dim=16 sinks=2,-1 mask=causal_top_left",
        "num_heads=2 seq_len=33 head_dim=16 softcap=1 sinks=0 "
        "alibi_max_bias=4 mask=causal_top_left",
        "num_heads=2 seq_len_q=9 seq_len_kv=4 head_dim=16 sinks=1 "
        "mask=causal_bottom_right",
        "batch=2 num_heads=2 seq_len_q=9 seq_len_kv=4,2 head_dim=16 "
        "empty_row=mean mask=causal_bottom_right",
        "num_heads=2 seq_len_q=9 seq_len_kv=4 head_dim=16 empty_row=nan "
        "mask=causal_bottom_right",
        "batch=2 num_heads=2 seq_len=9,5 head_dim=16 mask_form=boolean "
        "mask=causal_top_left",
        "batch=2 num_heads=2 seq_len=9,5 head_dim=16 mask_form=inverted "
        "mask=sliding_window_keys(keys=3)",
        "batch=2 num_heads=2 seq_len=9,5 head_dim=16 mask_form=additive "
        "mask=causal_top_left",
        "num_heads=2 num_kv_heads=1 seq_len=40 head_dim_qk=24 head_dim_v=16 "
        "value_in_key=true mask=causal_top_left",
        "batch=3 num_heads=4 num_kv_heads=2 seq_len=17,0,40 head_dim=16 "
        "packed=true packed_padding=3 layout=bshd mask=causal_top_left",
        "batch=3 num_heads=4 num_kv_heads=2 seq_len_q=1,7,3 "
        "seq_len_kv=33,16,70 head_dim=16 block_size=16 "
        "mask=causal_bottom_right",
        "batch=3 num_heads=4 num_kv_heads=2 seq_len_q=1,7,3 "
        "seq_len_kv=33,16,70 head_dim=16 packed=true block_size=4 "
        "shared_prefix=12 layout=bshd mask=causal_bottom_right"));

// One query among three keys, by hand: q.k = 2, 4, 0 at scale 1/2.
TEST(Reference, SoftcapAlibiAndSinkByHand) {
  const Problem problem = problem_of(
      "num_heads=1 seq_len_q=1 seq_len_kv=3 head_dim=1 softmax_scale=0.5 "
      "softcap=2 alibi_max_bias=1 sinks=0.25 dtype=fp64 mask=full");
  const double query[] = {2}, key[] = {1, 2, 0}, value[] = {1, 2, 4};
  const auto view = [](const double* data, std::int64_t count) {
    return ConstTensorView{reinterpret_cast<const std::byte*>(data),
                           Dtype::kFp64,
                           {1, 1, count, 1},
                           {count, count, 1, 1}};
  };
  ReferenceRow row;
  reference_row({&problem, view(query, 1), view(key, 3), view(value, 3)}, 0, 0,
                0, row);
  // One head: slope 2^-1; the query stands at key 2.
  const double s[] = {2 * std::tanh(0.5) - 1.0, 2 * std::tanh(1.0) - 0.5, 0.0};
  double sum = std::exp(0.25), mixed = 0;
  for (int j = 0; j < 3; ++j) {
    sum += std::exp(s[j]);
    mixed += std::exp(s[j]) * value[j];
  }
  EXPECT_NEAR(row.output[0], mixed / sum, 1e-14);
  EXPECT_NEAR(row.lse, std::log(sum), 1e-14);
  EXPECT_NEAR(row.mass, 1 - std::exp(0.25) / sum, 1e-14);
  EXPECT_NEAR(row.weights[1], std::exp(s[1]) / sum, 1e-14);
}

}  // namespace
}  // namespace attnguard
