// prefix-consistency: cutting later tokens off does not change earlier outputs.
#include <algorithm>

#include "guard/check/check_table.h"
#include "guard/check/slices.h"

namespace attnguard {
namespace {

Slices prefix_slices(const CheckContext& context) {
  const Problem& problem = context.problem;
  const std::int64_t half =
      *std::min_element(problem.seq_len_q.begin(), problem.seq_len_q.end()) / 2;
  return runnable_slices(
      context, {slice_tokens(problem, "all but the last token", 1, -1),
                half > 1 ? slice_tokens(problem,
                                        "all but the last " +
                                            std::to_string(half) + " tokens",
                                        half, -1)
                         : nullptr});
}

}  // namespace

const CheckInfo kCheckPrefixConsistency = {
    .id = "prefix-consistency",
    .summary = "cutting later tokens off does not change earlier outputs",
    .cost = "1 call per part, smaller than the whole",
    .explanation =
        R"(prefix-consistency: cutting later tokens off does not change earlier outputs

What it sees
  The problem once more without its last token, and without its second half.
  What is left sees the same keys as before and must give the same outputs.
  Unlike future-influence this changes the shape: kernels that choose another
  path by length, tile or split show their differences.

      5 tokens   #.... ##... ###.. ####. #####
      4 tokens   #...  ##..  ###.  ####          the same four rows

What it looks like
  Masks aligned by the wrong length, window edges taken from the end, scales or
  selections over the whole sequence, a path for short sequences that has no
  mask at all.

Real reports
  osaurus-ai/vmlx-swift#429 (bidirectional below a length), tenstorrent/
  tt-metal#48899 (rows of a chunk change with later rows).

What to look at in the kernel
  Everything that is chosen by seq_len: dispatch, tiles, splits, offsets.

Tolerance
  auto: twice the per-element bound of `reference`, since shapes differ and
  both sides round; exact: bit for bit; a number: that absolute difference.
)",
    .not_applicable = [](const CheckContext& context) -> std::string {
      return prefix_slices(context).empty()
                 ? "no shorter sequence leaves a row that sees the same keys"
                 : "";
    },
    .make = [](const CheckContext& context) -> std::unique_ptr<Check> {
      return make_slices(context, prefix_slices(context));
    },
    .beyond = true,
};

}  // namespace attnguard
