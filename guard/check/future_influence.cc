// future-influence: what a row may not see does not move it.
#include "guard/check/check_table.h"
#include "guard/check/influence.h"

namespace attnguard {

const CheckInfo kCheckFutureInfluence = {
    .id = "future-influence",
    .summary = "changing a later token does not change an earlier output",
    .cost = "1 call and 1 per round of cuts",
    .explanation =
        R"(future-influence: changing a later token does not change an earlier output

What it sees
  Later tokens (their keys, values and queries) get fresh random values of the
  usual size (`amplitude` does the same with far larger ones). Rows that may
  see none of them must be unchanged bit for bit; rows that may must move (the positive control).
  Every (batch entry, KV head) has its own cut: first, last, both sides of
  tile edges, then random. Where every row sees every key, only other rows'
  queries are changed.

      causal, 5 tokens, right axis    softmax over the query axis
        row 0  #....                    row 0  #XXXX
        row 1  ##...                    row 1  ##XXX
        row 2  ###..                    row 2  ###XX

What it looks like
  A missing or misaligned causal mask, a mask applied after the softmax,
  softmax over the query axis (the leak goes through the normaliser: no later
  value is ever read), scales or block maxima shared with later tokens.

Real reports
  karpathy/ng-video-lecture#42 (softmax over the query axis), candle#3609 (a
  padding mask replaced the causal one), jax-ml/jax#19237 (causal flag without
  effect), pytorch/pytorch#195910 (the limit evaluated once per four rows).

What to look at in the kernel
  The mask's alignment when seq_len_q != seq_len_kv, the tile-skipping
  condition, which axis the maximum and the sum run over, anything computed
  over a whole tile before the mask.

Tolerance
  auto: exact (bitwise); for an engine that declares itself non-deterministic
  four times the noise measured by repeating the base call. Engines whose
  rounding legally depends on the future (dynamic scales) need a number.
)",
    .not_applicable = no_cut,
    .make = [](const CheckContext& context) -> std::unique_ptr<Check> {
      return make_influence(context, Amplitude::kModerate);
    },
};

}  // namespace attnguard
