// row-sum: the weights of every row sum to one.
#include <set>

#include "guard/check/check_table.h"
#include "guard/check/compare.h"
#include "guard/check/control.h"
#include "guard/check/reference_rows.h"
#include "guard/check/rows.h"
#include "guard/probe/ones.h"
#include "guard/probe/random.h"

namespace attnguard {
namespace {

class RowSum final : public Check {
 public:
  explicit RowSum(const CheckContext& context) : context_(context) {}

  void plan(Plan& plan) override {
    control_.plan(plan, context_);
    const auto ones = std::make_shared<Ones>();
    plan.request(std::make_shared<RandomScores>(context_.problem,
                                                base_seed(context_.seed)),
                 ones);
    tickets_ = plan.request_in_every_call(ones);
  }

  void judge(const Observation& seen, FindingSink& sink) override {
    control_.judge(seen);
    for (const Ticket& ticket : tickets_)
      if (ticket.call == seen.call) judge_column(seen, ticket, sink);
  }

  void finish(const FindingSink& sink, CheckResult& result) override {
    conclude(sink, rows_ > 0 && control_.fired(), ReactsToInputs::kMissing,
             result);
    result.coverage = std::to_string(calls_) + " calls (";
    for (const std::string& name : names_)
      result.coverage += (name == *names_.begin() ? "" : ", ") + name;
    result.coverage += "), every row";
  }

 private:
  void judge_column(const Observation& seen, const Ticket& ticket,
                    FindingSink& sink) {
    ++calls_;
    names_.insert(seen.planned->scores->name());
    if (!context_.problem.sinks.empty()) {
      judge_beside_sink(seen, ticket, sink);
      return;
    }
    const auto sum_of = [&](const RowKeys& row) {
      return load_sum(seen, ticket, row.batch, row.head, row.query);
    };
    rows_ += visit_rows_where(
        context_.problem,
        [&](const RowKeys& row, std::vector<double>&) {
          const double bound = bound_for(row.allowed.count());
          return suspicious_if(!(std::abs(sum_of(row) - 1) <= bound));
        },
        [&](const RowKeys& row) {
          report(seen, {row.batch, row.head, row.query}, sum_of(row), 1,
                 bound_for(row.allowed.count()), sink);
        });
  }

  static double load_sum(const Observation& seen, const Ticket& ticket,
                         std::int64_t b, std::int64_t h, std::int64_t i) {
    double sum = 0;
    seen.output.load_row(b, h, i, ticket.first_column, 1, &sum);
    return sum;
  }

  // A sink takes its share of the mass: what is left depends on the scores.
  void judge_beside_sink(const Observation& seen, const Ticket& ticket,
                         FindingSink& sink) {
    struct Mass {
      double expected, bound;
    };
    const RowChoice choice =
        choose_rows(context_.problem, context_.coverage, context_.seed);
    std::vector<Mass> masses(choice.rows.size());
    for_each_reference_row(
        seen, choice, [&](std::size_t n, const ReferenceRow& row) {
          double bound = mass_bound(context_.problem, context_.numerics, row);
          if (context_.tolerance.kind == Tolerance::Kind::kNumber)
            bound = context_.tolerance.number;
          masses[n] = {row.mass, bound};
        });
    rows_ += static_cast<std::int64_t>(choice.rows.size());
    for (std::size_t n = 0; n < masses.size(); ++n) {
      const RowIndex& row = choice.rows[n];
      const double sum = load_sum(seen, ticket, row.batch, row.head, row.query);
      if (std::abs(sum - masses[n].expected) <= masses[n].bound) continue;
      report(seen, row, sum, masses[n].expected, masses[n].bound, sink);
    }
  }

  static void report(const Observation& seen, const RowIndex& row, double sum,
                     double expected, double bound, FindingSink& sink) {
    Finding finding{.kind = FindingKind::kMass,
                    .probe = seen.planned->scores->name(),
                    .batch = row.batch,
                    .head = row.head,
                    .query = row.query,
                    .observed = sum,
                    .expected = expected,
                    .bound = bound};
    finding.message = row_name(row.batch, row.head, row.query) +
                      ": weights sum to " + format_short(sum) + " instead of " +
                      format_short(expected);
    sink.add(std::move(finding));
  }

  double bound_for(std::int64_t num_keys) const {
    switch (context_.tolerance.kind) {
      case Tolerance::Kind::kExact:
        return 0;
      case Tolerance::Kind::kNumber:
        return context_.tolerance.number;
      case Tolerance::Kind::kAuto:
        break;
    }
    return mean_bound(context_.problem, context_.numerics, num_keys);
  }

  CheckContext context_;
  ReactsToInputs control_;
  std::vector<Ticket> tickets_;
  std::set<std::string> names_;
  std::int64_t rows_ = 0;
  std::int64_t calls_ = 0;
};

}  // namespace

const CheckInfo kCheckRowSum = {
    .id = "row-sum",
    .summary = "the weights of every row sum to one",
    .cost = "no call of its own when other checks run",
    .explanation =
        R"(row-sum: the weights of every row sum to one

What it sees
  One column of V is 1, so that output column is the sum of the row's weights.
  It rides along in every call with room for it: random scores, ladders (one
  key takes all), needles, equal weights.

      softmax over keys (right)       softmax over queries (wrong)
      row 0: 1.00            = 1      row 0: 0.31           = 0.31
      row 1: 0.40 0.60       = 1      row 1: 0.25 0.52      = 0.77
      row 2: 0.20 0.30 0.50  = 1      row 2: 0.44 0.48 1.00 = 1.92

  Beside a learned sink the sum is 1 less the sink's share, which fp64 attention
  says for each row: a sum of exactly 1 is the bug there.

What it looks like
  Softmax over the wrong axis after a transpose, a mask applied after the
  softmax, a denominator that counts masked keys, split-KV parts merged with
  the wrong weights, softmax taken twice, a tile that is added to the
  denominator but not to the output.

Real reports
  karpathy/ng-video-lecture#42 and PetrochukM/PyTorch-NLP#2 (wrong axis),
  lucidrains/memory-compressed-attention#2 (mask after the softmax).

What to look at in the kernel
  Which axis is reduced? What does the running sum contain when the maximum
  changes? How are partial results merged?

Tolerance
  auto: u(probabilities) + u(output) + 5 sqrt(n) u(accumulator) for n keys,
  about 2e-5 in fp32 at n = 4096.
)",
    .not_applicable = [](const CheckContext& context) -> std::string {
      return no_row_with_keys(context.problem);
    },
    .make = [](const CheckContext& context) -> std::unique_ptr<Check> {
      return std::make_unique<RowSum>(context);
    },
};

}  // namespace attnguard
