// lse: softmax_lse is right, and asking for it changes nothing.
#include "guard/check/check_table.h"
#include "guard/check/rows.h"
#include "guard/check/side_outputs.h"

namespace attnguard {

const CheckInfo kCheckLse = {
    .id = "lse",
    .summary = "softmax_lse is right, and asking for it changes nothing",
    .cost = "1 call",
    .explanation =
        R"(lse: softmax_lse is right, and asking for it changes nothing

What it sees
  Of engines that give it: log sum_j exp(s_j) of every row against fp64
  attention (natural logarithm, the sink included), and the output with and
  without it. Of a row without allowed keys it must be minus infinity, or the
  sink's logit: anything else has weight in a merge with another part.

      scores 1.0 2.0 3.0      softmax_lse = 3.41
                              base 2 instead of e: 4.92

What it looks like
  The logarithm in another base, the scale left out or applied twice, the
  maximum not added back, a sink left out, rows of one split only, a finite
  sentinel for rows without keys. Outputs may be right for all of it; merges of
  split or distributed attention are not.

Real reports
  Class row_sum_or_merge of the survey: 8 reports on normalisers and merges,
  among them flashinfer-ai/flashinfer#4452 (a finite LSE for empty rows).

What to look at in the kernel
  max + log(sum): the base of exp and log, and what the scale is folded into.

Tolerance
  auto: the error of scores and sums; a number: that absolute difference.
)",
    .not_applicable = [](const CheckContext& context) -> std::string {
      if (!context.has(Feature::kLse))
        return "the engine does not give softmax_lse";
      return no_row_with_keys(context.problem);
    },
    .make = [](const CheckContext& context) -> std::unique_ptr<Check> {
      return make_lse_check(context);
    },
    .beyond = true,
};

}  // namespace attnguard
