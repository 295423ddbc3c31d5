// batch-consistency: an entry gives the same outputs alone as in its batch.
#include <algorithm>

#include "guard/check/check_table.h"
#include "guard/check/slices.h"

namespace attnguard {
namespace {

Slices entry_slices(const CheckContext& context) {
  const Problem& problem = context.problem;
  if (problem.batch < 2) return {};
  return runnable_slices(context, {slice_entry(problem, 0),
                                   slice_entry(problem, problem.batch - 1),
                                   slice_entry(problem, problem.batch / 2)});
}

}  // namespace

const CheckInfo kCheckBatchConsistency = {
    .id = "batch-consistency",
    .summary = "an entry gives the same outputs alone as in its batch",
    .cost = "1 call per part, smaller than the whole",
    .explanation =
        R"(batch-consistency: an entry gives the same outputs alone as in its batch

What it sees
  The first, a middle and the last batch entry as problems of their own. Their
  rows must give what they gave in the batch. sequence-isolation changes what
  the neighbours hold, at the same shape; this takes the neighbours away.

      batch of 3    a  b  c          alone    b

What it looks like
  Lengths, offsets or scales of the longest entry used for all, cu_seqlens read
  one entry off, another kernel for batch 1, an index that overflows with the
  batch.

Real reports
  Class cross_sequence of the survey (25 reports) and index_overflow_oob; that
  rounding differs with the batch is legal (vllm-project/vllm#53257,
  pytorch/pytorch#182593), so the comparison has a bound.

What to look at in the kernel
  Everything that is indexed by the batch entry; the grid's batch axis; what
  dispatch chooses by batch size.

Tolerance
  auto: twice the per-element bound of `reference`, since shapes differ and
  both sides round; exact: bit for bit; a number: that absolute difference.
)",
    .not_applicable = [](const CheckContext& context) -> std::string {
      return entry_slices(context).empty()
                 ? "there is one batch entry, or none that can stand alone"
                 : "";
    },
    .make = [](const CheckContext& context) -> std::unique_ptr<Check> {
      return make_slices(context, entry_slices(context));
    },
    .beyond = true,
};

}  // namespace attnguard
