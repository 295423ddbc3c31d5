// value-range: every output lies within the range of the visible values.
#include <algorithm>
#include <cmath>
#include <limits>

#include "guard/check/check_table.h"
#include "guard/check/compare.h"
#include "guard/check/control.h"
#include "guard/check/reference_rows.h"
#include "guard/check/rows.h"

namespace attnguard {
namespace {

class ValueRange final : public Check {
 public:
  explicit ValueRange(const CheckContext& context)
      : context_(context),
        choice_(choose_rows(context.problem, context.coverage, context.seed)) {}

  void plan(Plan& plan) override { ticket_ = control_.plan(plan, context_); }

  void judge(const Observation& seen, FindingSink& sink) override {
    control_.judge(seen);
    if (seen.call != ticket_.call) return;
    for (const RowIndex& row : choice_.rows) judge_row(seen, row, sink);
    rows_ += static_cast<std::int64_t>(choice_.rows.size());
  }

  void finish(const FindingSink& sink, CheckResult& result) override {
    conclude(sink, rows_ > 0 && control_.fired(), ReactsToInputs::kMissing,
             result);
    result.coverage = choice_.coverage();
  }

 private:
  void judge_row(const Observation& seen, const RowIndex& at,
                 FindingSink& sink) {
    const Problem& problem = context_.problem;
    const auto channels = static_cast<std::size_t>(problem.head_dim_v);
    std::vector<double> value(channels), output(channels);
    // A sink pulls towards 0.
    const double start =
        problem.sinks.empty() ? std::numeric_limits<double>::infinity() : 0;
    std::vector<double> low(channels, start), high(channels, -start);
    KeyRanges allowed;
    problem.mask.allowed(problem.row(at.batch, at.query), allowed);
    for (const KeyRange& range : allowed.ranges())
      for (std::int64_t j = range.begin; j < range.end; ++j) {
        seen.value.load_row(at.batch, problem.kv_head_of(at.head), j, 0,
                            problem.head_dim_v, value.data());
        for (std::size_t c = 0; c < channels; ++c) {
          low[c] = std::min(low[c], value[c]);
          high[c] = std::max(high[c], value[c]);
        }
      }
    seen.output.load_row(at.batch, at.head, at.query, 0, problem.head_dim_v,
                         output.data());
    // Stored types share one step among the channels of a block: the row's
    // largest channel stands for the block's.
    double block = 0;
    for (std::size_t c = 0; c < channels; ++c)
      block = std::max({block, std::abs(low[c]), std::abs(high[c])});
    const double stored = context_.numerics.value_error;
    const bool exact = context_.tolerance.kind == Tolerance::Kind::kExact;
    const double relative =
        mean_bound(problem, context_.numerics, allowed.count()) - stored;
    for (std::size_t c = 0; c < channels; ++c) {
      double slack =
          exact ? 0
                : relative * std::max(std::abs(low[c]), std::abs(high[c])) +
                      stored * block;
      if (context_.tolerance.kind == Tolerance::Kind::kNumber)
        slack = context_.tolerance.number;
      // Written so that NaN is outside.
      if (output[c] >= low[c] - slack && output[c] <= high[c] + slack) continue;
      const double nearest = output[c] < low[c] ? low[c] : high[c];
      Finding finding{.kind = FindingKind::kValue,
                      .probe = seen.planned->scores->name(),
                      .batch = at.batch,
                      .head = at.head,
                      .query = at.query,
                      .channel = static_cast<std::int64_t>(c),
                      .observed = output[c],
                      .expected = nearest,
                      .bound = slack};
      finding.message = row_name(at.batch, at.head, at.query) +
                        ": output channel " + std::to_string(c) + " is " +
                        format_short(output[c]) +
                        ", outside the values that the row sees, " +
                        format_short(low[c]) + " to " + format_short(high[c]);
      sink.add(std::move(finding));
      return;
    }
  }

  CheckContext context_;
  RowChoice choice_;
  ReactsToInputs control_;
  Ticket ticket_;
  std::int64_t rows_ = 0;
};

}  // namespace

const CheckInfo kCheckValueRange = {
    .id = "value-range",
    .summary = "every output lies within the range of the visible values",
    .cost = "passive",
    .explanation =
        R"(value-range: every output lies within the range of the visible values

What it sees
  An output is a weighted mean, so in every channel it lies between the
  smallest and the largest value that the row sees (and 0 beside a sink). It
  needs no reference and no second call: it is the cheapest check that sees
  masses above 1, values of other sequences and memory that is not a value.

      visible values   -0.8 ... 1.2        output 1.9: not a mean of them

What it looks like
  Weights that sum to more than 1, a split merged twice, an output scaled or
  left unnormalised, values read from elsewhere, overflow.

Real reports
  The class row_sum_or_merge of the survey: 8 reports, 5 of them invisible to a
  causality test.

What to look at in the kernel
  The final division, the merge of partial results, the addressing of V.

Tolerance
  auto: u(probabilities) + u(output) + 5 sqrt(n) u(accumulator) times the
  largest value; a number: that absolute difference.
)",
    .not_applicable = [](const CheckContext& context) -> std::string {
      return no_row_with_keys(context.problem);
    },
    .make = [](const CheckContext& context) -> std::unique_ptr<Check> {
      return std::make_unique<ValueRange>(context);
    },
};

}  // namespace attnguard
