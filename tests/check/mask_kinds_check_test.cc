// Every kind of mask under every check: correct engines pass, an engine that
// ignores the mask does not, and one wrong key is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "guard/problem/mask/mask.h"
#include "guard/problem/random_problem.h"
#include "tests/support/engines.h"

namespace attnguard {
namespace {

constexpr const char* kMaskKindProblems[] = {
    "num_heads=2 seq_len=33 head_dim=32 mask=prefix_lm(prefix=9)",
    "num_heads=2 seq_len=33 head_dim=32 mask=sliding_window_keys(keys=8)",
    "num_heads=2 seq_len_q=9 seq_len_kv=70 head_dim=64 dtype=fp16 "
    "mask=sliding_window_keys(keys=32)",
    "num_heads=2 seq_len=33 head_dim=32 mask=sliding_window_two_sided(width=4)",
    "num_heads=2 seq_len=70 head_dim=64 mask=sliding_window_two_sided(width=0)",
    "num_heads=2 seq_len=33 head_dim=32 mask=window_symmetric(width=9)",
    "num_heads=2 seq_len=33 head_dim=32 mask=encoder_window(width=6)",
    "num_heads=2 seq_len=70 head_dim=64 dtype=bf16 "
    "mask=encoder_window(width=33)",
    "num_heads=2 seq_len=33 head_dim=32 mask=chunked_local(chunk=8)",
    "num_heads=2 seq_len=70 head_dim=64 "
    "mask=causal_bottom_right+chunked_local(chunk=32)",
    "num_heads=2 seq_len_q=9 seq_len_kv=70 head_dim=64 "
    "mask=causal_bottom_right+chunked_local(chunk=16)",
    "batch=3 num_heads=2 seq_len=33 head_dim=32 "
    "mask=causal_bottom_right+chunked_local_from_padding(chunk=8,pad=3:0:30)",
    "num_heads=2 seq_len=16 head_dim=32 mask=documents(lengths=5:3:8)",
    "num_heads=4 num_kv_heads=2 seq_len=70 head_dim=64 dtype=fp16 "
    "mask=causal_bottom_right+documents(lengths=17:0:33:1:12)",
    "num_heads=2 seq_len_q=20 seq_len_kv=40 head_dim=32 "
    "mask=documents(lengths=10:15:15)",
    "batch=3 num_heads=2 seq_len=17 head_dim=32 mask=left_padding(pad=3:0:5)",
    "batch=2 num_heads=2 seq_len=33 head_dim=32 "
    "mask=causal_bottom_right+left_padding(pad=32:1)",
    "batch=3 num_heads=2 seq_len_q=1 seq_len_kv=40 head_dim=32 "
    "mask=causal_bottom_right+left_padding(pad=3:0:40)",
    "batch=2 num_heads=2 seq_len=17 head_dim=32 mask=left_padding_keys(pad=5)",
    "num_heads=2 seq_len_q=6 seq_len_kv=33 head_dim=32 "
    "mask=tree(parents=-1:0:0:1:1:2)",
    "num_heads=2 seq_len_q=5 seq_len_kv=5 head_dim=32 "
    "mask=tree(parents=-1:-1:0:1:0)",
    "num_heads=2 seq_len=70 head_dim=64 dtype=fp16 "
    "mask=tree(parents=-1:0:1:-1:3:3:0:2)",
    "num_heads=2 seq_len=33 head_dim=32 "
    "mask=bidirectional_spans(begin=3:20,length=8:10)",
    "num_heads=2 seq_len_q=20 seq_len_kv=40 head_dim=32 dtype=bf16 "
    "mask=bidirectional_spans(begin=15,length=10)",
    "num_heads=2 seq_len_q=17 seq_len_kv=9 head_dim=32 "
    "mask=causal_bottom_right+documents(lengths=4:5)",
    "num_heads=2 seq_len=33 head_dim=32 "
    "mask=sliding_window(left=4,right=2)+documents(lengths=20:13)",
};

TEST(MaskKindsUnderChecks, CoverEveryKindThatIsNotCausalOrFullAlone) {
  std::set<std::string_view> missing;
  for (const MaskKind* kind : all_mask_kinds()) missing.insert(kind->name);
  for (const char* line : kMaskKindProblems) {
    const Problem problem = problem_of(line);
    for (const MaskTerm& term : problem.mask.terms())
      missing.erase(term.kind->name);
  }
  EXPECT_EQ(missing, (std::set<std::string_view>{"full", "causal_top_left",
                                                 "sliding_window_top_left"}));
}

TEST(MaskKindsUnderChecks, CorrectEnginesPass) {
  for (const char* name : {"tiled", "textbook"})
    for (const char* line : kMaskKindProblems) {
      const ProblemResult result = run_problem(builtin(name), line);
      EXPECT_EQ(result.verdict, Verdict::kPass)
          << name << " " << findings_text(result);
      EXPECT_EQ(expect_check(result, "visibility").verdict, Verdict::kPass);
    }
}

TEST(MaskKindsUnderChecks, AnEngineThatIgnoresTheMaskIsFlagged) {
  for (const char* line : kMaskKindProblems) {
    const ProblemResult result = run_problem(builtin("no_mask"), line);
    EXPECT_EQ(result.verdict, Verdict::kViolation) << findings_text(result);
    EXPECT_EQ(expect_check(result, "visibility").verdict, Verdict::kViolation)
        << findings_text(result);
  }
}

// The last row that sees a key and does not see another, and the two: one wrong
// key there must be found, whichever way round.
struct Places {
  Plant leak, miss;
};

Places places_of(const Problem& problem) {
  Places places;
  KeyRanges keys;
  for (std::int64_t b = 0; b < problem.batch; ++b)
    for (std::int64_t i = 0; i < problem.len_q(b); ++i) {
      problem.mask.allowed(problem.row(b, i), keys);
      const std::int64_t count = keys.count();
      if (count < 2 || count == problem.len_kv(b)) continue;
      std::int64_t hidden = problem.len_kv(b) - 1;
      while (keys.contains(hidden)) --hidden;
      places.leak = {b, 1, i, hidden};
      places.miss = {b, 1, i, keys.nth(count / 2)};
    }
  return places;
}

TEST(MaskKindsUnderChecks, OneWrongKeyInOneRowIsFoundThere) {
  int planted_rows = 0;
  for (const char* line : kMaskKindProblems) {
    const Places places = places_of(problem_of(line));
    if (places.leak.head == 0) continue;  // every row sees one key, or all
    ++planted_rows;
    for (const Plant& plant : {places.leak, places.miss}) {
      const ProblemResult result =
          run_problem(planted(plant), line, {"visibility"});
      const CheckResult& check = expect_check(result, "visibility");
      ASSERT_EQ(check.verdict, Verdict::kViolation)
          << line << " query " << plant.query << " key " << plant.key;
      bool named = false;
      for (const Finding& finding : check.findings) {
        EXPECT_EQ(finding.batch, plant.batch) << finding.message;
        EXPECT_EQ(finding.head, plant.head) << finding.message;
        EXPECT_EQ(finding.query, plant.query) << finding.message;
        named |= finding.key == plant.key;
      }
      EXPECT_TRUE(named) << findings_text(result);
    }
  }
  EXPECT_GE(planted_rows, 20);
}

// Every dtype, layout and length under masks, also such that no row sees a key.
TEST(MaskKindsUnderChecks, RandomProblemsGiveNoFinding) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Problem problem = random_problem(seed);
    const ProblemResult result =
        run_problem(builtin("tiled"), problem.text(), {}, seed);
    // Few channels cannot tell keys apart: visibility then says so.
    const bool narrow = problem.head_dim_v == 1 || problem.head_dim_qk < 8;
    EXPECT_TRUE(result.verdict == Verdict::kPass ||
                result.verdict == Verdict::kNotApplicable ||
                (narrow && result.verdict == Verdict::kInconclusive))
        << "seed " << seed << "\n"
        << findings_text(result);
  }
}

}  // namespace
}  // namespace attnguard
