// reference: outputs agree with fp64 attention within what rounding explains.
#include <algorithm>

#include "guard/check/check_table.h"
#include "guard/check/reference_rows.h"
#include "guard/check/rows.h"
#include "guard/probe/random.h"

namespace attnguard {
namespace {

// Share of the budget for each call that other checks make: ladders, fresh
// tokens of extreme size, equal weights. Faults that depend on what came
// before, or on the size of the numbers, show there.
constexpr double kShareOfOtherCalls = 1.0 / 64;

class Reference final : public Check {
 public:
  explicit Reference(const CheckContext& context)
      : context_(context),
        choice_(choose_rows(context.problem, context.coverage, context.seed)) {}

  void plan(Plan& plan) override {
    const Problem& problem = context_.problem;
    const std::uint64_t seed = base_seed(context_.seed);
    const auto values = std::make_shared<RandomValues>(problem, seed);
    tickets_.push_back(
        plan.request(std::make_shared<RandomScores>(problem, seed), values));
    // Scores of about 1 do not feel a cap of 50.
    if (problem.softcap)
      tickets_.push_back(plan.request(capped_scores(problem, seed), values));
  }

  void judge(const Observation& seen, FindingSink& sink) override {
    const bool own = std::any_of(
        tickets_.begin(), tickets_.end(),
        [&](const Ticket& ticket) { return ticket.call == seen.call; });
    if (own) {
      judge_rows(context_, seen, choice_, Scores::kUsual, sink);
      ++calls_;
      return;
    }
    if (seen.planned->mode.problem ||
        seen.planned->mode.unused == UnusedFill::kNan)
      return;
    const RowChoice some =
        choose_rows(context_.problem, context_.coverage, context_.seed,
                    kShareOfOtherCalls, seen.call);
    judge_rows(context_, seen, some, Scores::kLarge, sink);
    rows_elsewhere_ += static_cast<std::int64_t>(some.rows.size());
  }

  void finish(const FindingSink& sink, CheckResult& result) override {
    conclude(sink, calls_ > 0 && !choice_.rows.empty(),
             "no row with an allowed key was judged", result);
    result.coverage = choice_.coverage();
    if (rows_elsewhere_ > 0)
      result.coverage +=
          ", " + std::to_string(rows_elsewhere_) + " rows of other calls";
  }

 private:
  CheckContext context_;
  RowChoice choice_;
  std::vector<Ticket> tickets_;
  std::int64_t calls_ = 0;
  std::int64_t rows_elsewhere_ = 0;
};

}  // namespace

const CheckInfo kCheckReference = {
    .id = "reference",
    .summary = "outputs agree with fp64 attention within rounding",
    .cost = "no call of its own when other checks run",
    .explanation =
        R"(reference: outputs agree with fp64 attention within rounding

What it sees
  On random inputs each output element is compared with attention computed in
  fp64, against a bound made for that element: the rounding of scores, of
  weights, of sums over n keys and of the output, each times what it acts on.
  It sees wrong scales, wrong channels, wrong value addressing: faults that
  keep visibility and row sums intact.

  Where a soft-cap bends the scores a second call has scores that reach it. A
  few rows of every other call are compared too.

What it does not see
  Faults smaller than rounding, such as one key of thousands dropped; that is
  what visibility is for. Where the full reference would cost more than the
  engine, rows are sampled (first, last, tile edges, then random), and the
  report says how many.

What to look at in the kernel
  softmax_scale (forgotten, applied twice, in the wrong base), head_dim tails,
  the precision of the accumulator, conversions of the weights.

Tolerance
  auto: the per-element bound; a number: that absolute difference.
)",
    .not_applicable = [](const CheckContext& context) -> std::string {
      return no_row_with_keys(context.problem);
    },
    .make = [](const CheckContext& context) -> std::unique_ptr<Check> {
      return std::make_unique<Reference>(context);
    },
};

}  // namespace attnguard
