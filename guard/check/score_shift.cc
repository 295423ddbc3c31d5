// score-shift: a constant added to all scores of a row changes nothing.
#include "guard/check/check_table.h"
#include "guard/check/reference_rows.h"
#include "guard/check/rows.h"
#include "guard/probe/random.h"
#include "guard/probe/shift.h"

namespace attnguard {
namespace {

// In nats: beyond the sentinels -1e2 ... -1e4 and -65504 that engines use for
// "minus infinity", and beyond what exp holds.
constexpr double kShifts[] = {-2e4, 1e3, -1e3, -7e4};

std::vector<std::shared_ptr<const ShiftedScores>> shifts_for(
    const CheckContext& context, std::string& why_not) {
  std::vector<std::shared_ptr<const ShiftedScores>> shifts;
  for (double shift : kShifts) {
    auto scores = ShiftedScores::make(context.problem, context.numerics, shift,
                                      base_seed(context.seed), why_not);
    if (scores) shifts.push_back(std::move(scores));
    if (context.coverage == Coverage::kSampled && shifts.size() == 2) break;
  }
  return shifts;
}

class ScoreShift final : public Check {
 public:
  explicit ScoreShift(const CheckContext& context)
      : context_(context),
        choice_(choose_rows(context.problem, context.coverage, context.seed,
                            kQuarterBudget)) {}

  void plan(Plan& plan) override {
    const auto values = std::make_shared<RandomValues>(
        context_.problem, base_seed(context_.seed));
    std::string why_not;
    for (const auto& scores : shifts_for(context_, why_not))
      tickets_.push_back(plan.request(scores, values));
  }

  void judge(const Observation& seen, FindingSink& sink) override {
    for (const Ticket& ticket : tickets_) {
      if (ticket.call != seen.call) continue;
      judge_rows(context_, seen, choice_, Scores::kLarge, sink);
      names_ += (names_.empty() ? "" : ", ") + seen.planned->scores->name();
    }
  }

  void finish(const FindingSink& sink, CheckResult& result) override {
    conclude(sink, !names_.empty() && !choice_.rows.empty(),
             "no row with an allowed key was judged", result);
    result.coverage = std::to_string(tickets_.size()) + " calls (" + names_ +
                      "), " + choice_.coverage();
  }

 private:
  CheckContext context_;
  RowChoice choice_;
  std::vector<Ticket> tickets_;
  std::string names_;
};

}  // namespace

const CheckInfo kCheckScoreShift = {
    .id = "score-shift",
    .summary = "a constant added to all scores of a row changes nothing",
    .cost = "at most 4 calls",
    .explanation =
        R"(score-shift: a constant added to all scores of a row changes nothing

What it sees
  The softmax does not know where zero is. One channel of query and key adds
  the same number to every score of a row (1000, -1000, -20000 and -70000 nats,
  as far as the dtype and the engine's scores hold them), and the outputs are
  compared with fp64 attention.

      legal scores        -20003  -20001  -20002
      masked as "-inf"    -10000  -10000            the masked keys win

What it looks like
  Masked scores that are a finite number (-1e4, -65504, finfo.min of another
  dtype): once legal scores fall below it, masked keys take the row over. A
  running maximum that starts at 0 or -10000 instead of -inf: rows become 0 or
  NaN. A softmax without subtraction of the maximum: exp overflows.

Real reports
  karpathy/minGPT#75 (masked bias -1e4), microsoft/onnxruntime#14363 and #28904
  (large negative constants for exclusion).

What to look at in the kernel
  The value that stands for a masked score, the initial value of the running
  maximum, and whether the maximum is taken before exp.

Tolerance
  auto: the per-element bound of `reference`, which grows with the size of the
  scores; a number: that absolute difference.
)",
    .not_applicable = [](const CheckContext& context) -> std::string {
      if (std::string reason = no_row_with_keys(context.problem);
          !reason.empty())
        return reason;
      std::string why_not;
      return shifts_for(context, why_not).empty() ? why_not : "";
    },
    .make = [](const CheckContext& context) -> std::unique_ptr<Check> {
      return std::make_unique<ScoreShift>(context);
    },
    .beyond = true,
};

}  // namespace attnguard
