// No false alarms: correct engines on problems drawn at random over the grid.
#include <gtest/gtest.h>

#include <array>

#include "guard/base/rng.h"
#include "tests/support/engines.h"

#if defined(__SANITIZE_ADDRESS__)
constexpr int kProblems = 100;
#else
constexpr int kProblems = 200;
#endif

namespace attnguard {
namespace {

constexpr std::uint64_t kSeed = 20261129;

// Draws one choice at a time from a printed seed.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed) {}
  std::int64_t below(std::int64_t bound) {
    state_ = mix_bits(state_);
    return uniform_below(state_, bound);
  }
  template <typename T, std::size_t n>
  T of(const std::array<T, n>& choices) {
    return choices[static_cast<std::size_t>(below(n))];
  }

 private:
  std::uint64_t state_;
};

std::string random_mask(Draw& draw) {
  const std::string left = std::to_string(draw.below(40));
  const std::string right = std::to_string(draw.below(5));
  switch (draw.below(8)) {
    case 0:
    case 1:
      return "full";
    case 2:
      return "causal_top_left";
    case 3:
      return "causal_bottom_right";
    case 4:
      return "prefix_lm(prefix=" + left + ")";
    case 5:
      return "sliding_window(left=" + left + ",right=" + right + ")";
    case 6:
      return "causal_bottom_right+sliding_window(left=" + left + ",right=0)";
    default:
      return "causal_top_left+sliding_window_top_left(left=" + left +
             ",right=-1)";
  }
}

std::string random_lengths(Draw& draw, std::int64_t batch) {
  constexpr std::array<std::int64_t, 14> kLengths = {
      1, 2, 7, 15, 16, 17, 31, 33, 63, 64, 65, 100, 129, 0};
  if (draw.below(3) != 0)
    return std::to_string(std::max<std::int64_t>(draw.of(kLengths), 1));
  std::string text;
  for (std::int64_t b = 0; b < batch; ++b)
    text += (b == 0 ? "" : ",") + std::to_string(draw.of(kLengths));
  return text;
}

std::string random_problem(Draw& draw) {
  constexpr std::array<const char*, 8> kHeads = {"num_heads=1",
                                                 "num_heads=2",
                                                 "num_heads=3 num_kv_heads=1",
                                                 "num_heads=6 num_kv_heads=2",
                                                 "num_heads=8 num_kv_heads=2",
                                                 "num_heads=4 num_kv_heads=4",
                                                 "num_heads=5 num_kv_heads=1",
                                                 "num_heads=6 num_kv_heads=3"};
  constexpr std::array<std::int64_t, 9> kDims = {8,  16, 24, 33, 40,
                                                 64, 72, 80, 128};
  constexpr std::array<const char*, 8> kDtypes = {"fp32",
                                                  "fp32",
                                                  "fp16",
                                                  "bf16",
                                                  "fp16 out_dtype=fp32",
                                                  "bf16 out_dtype=fp32",
                                                  "fp64",
                                                  "fp32 out_dtype=bf16"};
  constexpr std::array<const char*, 3> kLayouts = {"bhsd", "bshd", "sbhd"};
  const std::int64_t batch = 1 + draw.below(4);
  std::string line = "batch=" + std::to_string(batch) + " " + draw.of(kHeads);
  line += " seq_len_q=" + random_lengths(draw, batch);
  line += " seq_len_kv=" + random_lengths(draw, batch);
  line += " head_dim_qk=" + std::to_string(draw.of(kDims));
  line += " head_dim_v=" + std::to_string(draw.of(kDims));
  line += std::string(" dtype=") + draw.of(kDtypes);
  if (draw.below(4) == 0)
    line += " softmax_scale=0." + std::to_string(1 + draw.below(99));
  line += " mask=" + random_mask(draw);
  line += std::string(" layout=") + draw.of(kLayouts);
  return line;
}

TEST(CleanProblems, GiveNoFindingOnCorrectEngines) {
  const Engine tiled = builtin("tiled");
  const Engine textbook = builtin("textbook");
  Draw draw(kSeed);
  int judged = 0;
  for (int n = 0; n < kProblems; ++n) {
    const std::string line = random_problem(draw);
    const ProblemResult result =
        run_problem(n % 4 == 3 ? textbook : tiled, line, {},
                    kSeed + static_cast<std::uint64_t>(n));
    ASSERT_TRUE(result.verdict == Verdict::kPass ||
                result.verdict == Verdict::kNotApplicable)
        << "problem " << n << " of seed " << kSeed << "\n"
        << findings_text(result);
    judged += result.verdict == Verdict::kPass;
  }
  // Rows without keys everywhere are rare: nearly all problems were judged.
  EXPECT_GT(judged, kProblems * 9 / 10);
  RecordProperty("problems", kProblems);
  RecordProperty("seed", std::to_string(kSeed));
}

TEST(CleanProblems, GiveTheSameResultForOneAndTwoThreads) {
  Draw draw(kSeed + 1);
  for (int n = 0; n < 20; ++n) {
    const std::string line = random_problem(draw);
    for (const char* name : {"tiled", "wrong_axis"}) {
      std::string text[2];
      for (int threads : {1, 2}) {
        Policy policy;
        policy.problems.push_back({problem_of(line), {}});
        const RunResult run = verify(builtin(name), policy,
                                     {.threads = threads, .draw_maps = false});
        for (const ProblemResult& result : run.problems)
          text[threads - 1] += findings_text(result);
      }
      EXPECT_EQ(text[0], text[1]) << line;
    }
  }
}

}  // namespace
}  // namespace attnguard
