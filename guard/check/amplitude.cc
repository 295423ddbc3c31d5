// amplitude: huge later tokens do not move earlier rows.
#include "guard/check/check_table.h"
#include "guard/check/influence.h"

namespace attnguard {

const CheckInfo kCheckAmplitude = {
    .id = "amplitude",
    .summary = "huge later tokens do not move earlier outputs",
    .cost = "1 call and 1 per round of cuts",
    .explanation =
        R"(amplitude: huge later tokens do not move earlier outputs

What it sees
  future-influence with later tokens far larger than the rest: values 1024
  times the usual, queries and keys up to 64 times, so that scores reach
  thousands. Rows that may not see them must be unchanged bit for bit. What
  travels through a statistic shows only so: a scale shared by a tile, a block
  maximum taken before the mask, a selection of the largest scores.

      one scale for a tile of V             after a huge token 6
        token 5: 0.7311 -> 0.73             token 5: 0.7311 -> 1.0

What it looks like
  Quantisation scales computed over tokens that a row may not see, masked
  scores that are finite and not low enough (a huge legal score below them), a
  rescaling that overflows because a masked tile set the maximum, top-k
  selection before the mask.

Real reports
  NVIDIA/TransformerEngine#3248 (one exponent for 32 values of V),
  huggingface/transformers#48363 (sparse indexer without a causal mask),
  ohdearquant/lattice#6 (finite soft mask before the selection).

What to look at in the kernel
  Every maximum, amax and scale: over which tokens is it taken? Is the mask
  applied before it?

Tolerance
  auto: exact (bitwise); for an engine that declares itself non-deterministic
  four times its noise. Engines whose scales legally depend on later tokens
  (dynamic fp8) need a number.
)",
    .not_applicable = no_cut,
    .make = [](const CheckContext& context) -> std::unique_ptr<Check> {
      return make_influence(context, Amplitude::kExtreme);
    },
};

}  // namespace attnguard
