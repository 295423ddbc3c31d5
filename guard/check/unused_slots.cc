// unused-slots: what lies where no token is does not matter.
#include "guard/check/unused_slots.h"

#include <algorithm>
#include <limits>

#include "guard/check/baseline.h"
#include "guard/check/check_table.h"
#include "guard/check/compare.h"
#include "guard/check/rows.h"
#include "guard/probe/random.h"
#include "guard/probe/target_rows.h"

namespace attnguard {
namespace {

bool every_row(std::int64_t, std::int64_t) { return true; }

class UnusedSlots final : public Check {
 public:
  UnusedSlots(const CheckContext& context, UnusedFill fill)
      : context_(context), fill_(fill) {}

  void plan(Plan& plan) override {
    base_.plan(plan, context_);
    // Tokens that no row sees, such as padding on the left, count as unused;
    // every query is a target and keeps its values.
    const auto rows = std::make_shared<TargetRows>(context_.problem, every_row);
    Perturbation how;
    how.label = fill_ == UnusedFill::kNan ? "unused-nan" : "unused-large";
    how.base_seed = base_seed(context_.seed);
    how.fresh_seed = mix_bits(how.base_seed);
    how.score_amplitude = how.value_amplitude =
        fill_ == UnusedFill::kNan
            ? std::numeric_limits<double>::quiet_NaN()
            : std::min(
                  context_.numerics.largest_input(context_.problem.dtype) / 16,
                  4096.0);
    ticket_ = plan.request(perturbed_scores(rows, how),
                           perturbed_values(rows, how), {.unused = fill_});
    base_.plan_control(plan, context_);
  }

  void judge(const Observation& seen, FindingSink& sink) override {
    base_.judge(seen);
    if (seen.call != ticket_.call) return;
    for_each_row(context_.problem, [&](std::int64_t b, std::int64_t h,
                                       std::int64_t i, const KeyRanges&) {
      ++rows_;
      double change = 0;
      if (!base_.moved(seen, b, h, i, change)) return;
      Finding finding{.kind = FindingKind::kLeak,
                      .probe = seen.planned->scores->name(),
                      .batch = b,
                      .head = h,
                      .query = i,
                      .observed = change,
                      .bound = base_.limit()};
      finding.message =
          row_name(b, h, i) +
          (std::isnan(change) ? std::string(": output becomes NaN")
                              : ": output moves by " + format_short(change)) +
          " when places that no row may read hold " +
          (fill_ == UnusedFill::kNan ? "NaN" : "large numbers");
      sink.add(std::move(finding));
    });
  }

  void finish(const FindingSink& sink, CheckResult& result) override {
    if (!base_.too_noisy(result))
      conclude(sink, rows_ > 0 && base_.rows_moved_by_control() > 0,
               "no row moved when all inputs changed, so the engine does not "
               "react to its inputs",
               result);
    result.coverage = "1 call, " + std::to_string(rows_) + " rows";
  }

 private:
  CheckContext context_;
  UnusedFill fill_;
  Baseline base_;
  Ticket ticket_;
  std::int64_t rows_ = 0;
};

}  // namespace

std::unique_ptr<Check> make_unused_slots(const CheckContext& context,
                                         UnusedFill fill) {
  return std::make_unique<UnusedSlots>(context, fill);
}

std::string no_unused_slot(const CheckContext& context) {
  const Problem& problem = context.problem;
  if (std::string reason = no_row_with_keys(problem); !reason.empty())
    return reason;
  if (problem.block_size > 0 || problem.packed_padding > 0) return "";
  if (!problem.packed)
    for (std::int64_t b = 0; b < problem.batch; ++b)
      if (problem.len_kv(b) < problem.max_len_kv() ||
          problem.len_q(b) < problem.max_len_q())
        return "";
  if (TargetRows(problem, every_row).num_perturbed_keys() > 0) return "";
  return "every place of the tensors holds a token that some row sees";
}

const CheckInfo kCheckUnusedSlots = {
    .id = "unused-slots",
    .summary = "what lies in unused slots and pages does not matter",
    .cost = "2 calls",
    .explanation =
        R"(unused-slots: what lies in unused slots and pages does not matter

What it sees
  The base call once more, with large finite numbers in every place that no row
  may read: slots past an entry's length, the rest of its last block, blocks
  that no sequence refers to, trailing padding of packed tensors, padded
  queries, and tokens that the mask hides from every row (padding on the
  left). Every row must be unchanged bit for bit.

      length 5, slots 8       K: k0 k1 k2 k3 k4 | 16384 16384 16384
                              the row sees these |  and never these

What it looks like
  The tail of a tile that is loaded but not masked, a length that is rounded up
  to the tile or the page, the maximum's length used for every entry, a block
  table read one entry too far, stale tokens of the slot's last user.

Real reports
  The class padding_or_unused_slot_leak of the survey: 20 reports, among them
  ml-explore/mlx-lm#1673 (unfilled slots of an over-allocated cache kept).

What to look at in the kernel
  The bound of the key loop and the mask of its last tile; where the length
  comes from (per entry?); ceil(length / block_size).

Tolerance
  auto: exact (bitwise), or four times the noise of an engine that declares
  itself non-deterministic.
)",
    .not_applicable = no_unused_slot,
    .make = [](const CheckContext& context) -> std::unique_ptr<Check> {
      return make_unused_slots(context, UnusedFill::kLarge);
    },
};

}  // namespace attnguard
