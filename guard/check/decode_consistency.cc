// decode-consistency: prefill, chunked prefill and token by token agree.
#include <algorithm>

#include "guard/check/check_table.h"
#include "guard/check/slices.h"

namespace attnguard {
namespace {

Slices decode_slices(const CheckContext& context) {
  const Problem& problem = context.problem;
  const std::int64_t shortest =
      *std::min_element(problem.seq_len_q.begin(), problem.seq_len_q.end());
  if (shortest < 2) return {};
  const std::int64_t third = shortest / 3;
  Slices slices = {
      slice_tokens(problem, "decode of the last token", 0, 1),
      slice_tokens(problem, "decode of token " + std::to_string(-third - 1),
                   third, 1),
      third > 1 ? slice_tokens(
                      problem,
                      "a chunk of " + std::to_string(third) + " in the middle",
                      third, third)
                : nullptr,
      slice_tokens(problem, "the last two tokens", 0, 2)};
  if (context.coverage == Coverage::kFull)
    for (std::int64_t drop = 0; drop < std::min<std::int64_t>(shortest, 16);
         ++drop)
      slices.push_back(slice_tokens(
          problem, "decode of token " + std::to_string(-drop - 1), drop, 1));
  return runnable_slices(context, slices);
}

}  // namespace

const CheckInfo kCheckDecodeConsistency = {
    .id = "decode-consistency",
    .summary = "prefill, chunked prefill and token by token agree",
    .cost = "1 call per part, smaller than the whole",
    .explanation =
        R"(decode-consistency: prefill, chunked prefill and token by token agree

What it sees
  Single rows of the problem as decode steps (one query, the keys up to it),
  and a few rows as a chunk of a chunked prefill. They must give what the whole
  prefill gives in those rows. Tokens count from the end: token -1 is the last.

      prefill  row 4 of 5   #####
      decode   1 query,     #####     the same output
               5 keys

What it looks like
  Decode kernels with another window, scale, soft-cap or sink than prefill;
  causal masks aligned top-left when seq_len_q < seq_len_kv; chunks that do not
  see the cached history, or see each other's later tokens.

Real reports
  Class prefill_ne_decode of the survey: 11 reports, none of which a causality
  test and row sums see; sgl-project/sglang#32087 (decode window one short),
  hyprstream/hyprstream#1521 (cached history hidden from a chunk),
  ml-explore/mlx-lm#390.

What to look at in the kernel
  The alignment of the mask for seq_len_q < seq_len_kv, the window's count in
  both kernels, everything the decode path passes and the prefill path does not.

Tolerance
  auto: twice the per-element bound of `reference`, since shapes differ and
  both sides round; exact: bit for bit; a number: that absolute difference.
)",
    .not_applicable = [](const CheckContext& context) -> std::string {
      return decode_slices(context).empty()
                 ? "there is one query, or rows do not "
                   "see the same keys as a decode step"
                 : "";
    },
    .make = [](const CheckContext& context) -> std::unique_ptr<Check> {
      return make_slices(context, decode_slices(context));
    },
    .beyond = true,
};

}  // namespace attnguard
