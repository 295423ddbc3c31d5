#include "guard/check/side_outputs.h"

#include <cmath>
#include <optional>

#include "guard/check/compare.h"
#include "guard/check/control.h"
#include "guard/check/reference_rows.h"
#include "guard/check/rows.h"

namespace attnguard {
namespace {

class SideOutput : public Check {
 public:
  SideOutput(const CheckContext& context, const CallMode& mode)
      : context_(context),
        mode_(mode),
        choice_(choose_rows(context.problem, context.coverage, context.seed)) {}

  void plan(Plan& plan) override {
    const Problem& problem = context_.problem;
    const std::uint64_t seed = base_seed(context_.seed);
    base_ = control_.plan(plan, context_);
    plan.keep_output(base_);
    ticket_ =
        plan.request(std::make_shared<RandomScores>(problem, seed),
                     std::make_shared<RandomValues>(problem, seed), mode_);
  }

  void judge(const Observation& seen, FindingSink& sink) override {
    control_.judge(seen);
    if (seen.call != ticket_.call) return;
    std::vector<std::optional<Finding>> found(2 * choice_.rows.size());
    for_each_reference_row(
        seen, choice_, [&](std::size_t n, const ReferenceRow& row) {
          found[2 * n] = judge_side(seen, choice_.rows[n], row);
          found[2 * n + 1] = judge_output(seen, choice_.rows[n], row);
        });
    rows_ += static_cast<std::int64_t>(choice_.rows.size());
    for (std::optional<Finding>& finding : found)
      if (finding) sink.add(std::move(*finding));
  }

  void finish(const FindingSink& sink, CheckResult& result) override {
    conclude(sink, rows_ > 0 && control_.fired(), ReactsToInputs::kMissing,
             result);
    result.coverage = "1 call, " + choice_.coverage();
  }

 protected:
  virtual std::optional<Finding> judge_side(const Observation& seen,
                                            const RowIndex& at,
                                            const ReferenceRow& row) const = 0;

  static Finding finding_at(const Observation& seen, const RowIndex& at) {
    return {.kind = FindingKind::kValue,
            .probe = seen.planned->scores->name(),
            .batch = at.batch,
            .head = at.head,
            .query = at.query};
  }

  double bound_or(double bound) const {
    switch (context_.tolerance.kind) {
      case Tolerance::Kind::kExact:
        return 0;
      case Tolerance::Kind::kNumber:
        return context_.tolerance.number;
      case Tolerance::Kind::kAuto:
        break;
    }
    return bound;
  }

  CheckContext context_;

 private:
  // Asking for more may choose another path: both sides round.
  std::optional<Finding> judge_output(const Observation& seen,
                                      const RowIndex& at,
                                      const ReferenceRow& row) const {
    const std::int64_t channels = context_.problem.head_dim_v;
    std::vector<double> with(static_cast<std::size_t>(channels));
    std::vector<double> without(with.size());
    seen.output.load_row(at.batch, at.head, at.query, 0, channels, with.data());
    seen.kept(base_.call)
        .load_row(at.batch, at.head, at.query, 0, channels, without.data());
    for (std::int64_t c = 0; c < channels; ++c) {
      const auto channel = static_cast<std::size_t>(c);
      const double bound = bound_or(
          2 * reference_bound(context_.problem, context_.numerics, row, c));
      if (std::abs(with[channel] - without[channel]) <= bound) continue;
      Finding finding = finding_at(seen, at);
      finding.channel = c;
      finding.observed = with[channel];
      finding.expected = without[channel];
      finding.bound = bound;
      finding.message =
          row_name(at.batch, at.head, at.query) + ": output channel " +
          std::to_string(c) + " is " + format_short(finding.observed) +
          " when " + (mode_.ask_lse ? "softmax_lse is" : "weights are") +
          " asked for and " + format_short(finding.expected) + " without";
      return finding;
    }
    return std::nullopt;
  }

  CallMode mode_;
  RowChoice choice_;
  ReactsToInputs control_;
  Ticket base_, ticket_;
  std::int64_t rows_ = 0;
};

class LseCheck final : public SideOutput {
 public:
  explicit LseCheck(const CheckContext& context)
      : SideOutput(context, {.ask_lse = true}) {}

  void judge(const Observation& seen, FindingSink& sink) override {
    SideOutput::judge(seen, sink);
    if (seen.softmax_lse.data == nullptr) return;
    // A number that looks like one gives nothing some weight in a merge.
    const Problem& problem = context_.problem;
    if (problem.empty_row == EmptyRow::kAny) return;
    KeyRanges allowed;
    for (std::int64_t b = 0; b < problem.batch; ++b)
      for (std::int64_t i = 0; i < problem.len_q(b); ++i) {
        problem.mask.allowed(problem.row(b, i), allowed);
        if (!allowed.empty()) continue;
        for (std::int64_t h = 0; h < problem.num_heads; ++h)
          judge_row_without_keys(seen, {b, h, i}, sink);
      }
  }

 protected:
  std::optional<Finding> judge_side(const Observation& seen, const RowIndex& at,
                                    const ReferenceRow& row) const override {
    double lse = 0;
    seen.softmax_lse.load_row(at.batch, at.head, at.query, 0, 1, &lse);
    const double bound =
        bound_or(lse_bound(context_.problem, context_.numerics, row));
    if (std::abs(lse - row.lse) <= bound) return std::nullopt;
    Finding finding = finding_at(seen, at);
    finding.observed = lse;
    finding.expected = row.lse;
    finding.bound = bound;
    finding.message = row_name(at.batch, at.head, at.query) +
                      ": softmax_lse is " + format_short(lse) +
                      ", log sum exp of the row's scores is " +
                      format_short(row.lse);
    return finding;
  }

 private:
  void judge_row_without_keys(const Observation& seen, const RowIndex& at,
                              FindingSink& sink) const {
    double lse = 0;
    seen.softmax_lse.load_row(at.batch, at.head, at.query, 0, 1, &lse);
    const double sink_logit = context_.problem.sink(at.head);
    const double bound = std::isfinite(sink_logit)
                             ? bound_or(unit_roundoff(seen.softmax_lse.dtype) *
                                        (4 * std::abs(sink_logit) + 4))
                             : 0;
    if (lse == sink_logit || std::abs(lse - sink_logit) <= bound) return;
    Finding finding = finding_at(seen, at);
    finding.observed = lse;
    finding.expected = sink_logit;
    finding.bound = bound;
    finding.message = row_name(at.batch, at.head, at.query) +
                      ": softmax_lse is " + format_short(lse) +
                      " of a row without allowed keys, which must be " +
                      format_short(sink_logit);
    sink.add(std::move(finding));
  }
};

class WeightsCheck final : public SideOutput {
 public:
  explicit WeightsCheck(const CheckContext& context)
      : SideOutput(context, {.ask_weights = true}) {}

 protected:
  std::optional<Finding> judge_side(const Observation& seen, const RowIndex& at,
                                    const ReferenceRow& row) const override {
    const Problem& problem = context_.problem;
    const std::int64_t keys = problem.len_kv(at.batch);
    std::vector<double> weights(static_cast<std::size_t>(keys));
    seen.weights.load_row(at.batch, at.head, at.query, 0, keys, weights.data());
    KeyRanges allowed;
    problem.mask.allowed(problem.row(at.batch, at.query), allowed);
    for (std::int64_t j = 0; j < keys; ++j) {
      const bool visible = allowed.contains(j);
      const double observed = weights[static_cast<std::size_t>(j)];
      const double expected =
          visible ? row.weights[static_cast<std::size_t>(j)] : 0;
      const double bound =
          visible ? bound_or(weight_bound(problem, context_.numerics, row, j))
                  : 0;
      if (std::abs(observed - expected) <= bound) continue;
      Finding finding = finding_at(seen, at);
      finding.kind = visible ? FindingKind::kValue : FindingKind::kLeak;
      finding.key = j;
      finding.observed = observed;
      finding.expected = expected;
      finding.bound = bound;
      finding.message =
          row_name(at.batch, at.head, at.query) + ": the weight of key " +
          std::to_string(j) + " is " + format_short(observed) +
          (visible ? ", fp64 attention gives " + format_short(expected)
                   : std::string(", which is not allowed"));
      return finding;
    }
    return std::nullopt;
  }
};

}  // namespace

std::unique_ptr<Check> make_lse_check(const CheckContext& context) {
  return std::make_unique<LseCheck>(context);
}

std::unique_ptr<Check> make_weights_check(const CheckContext& context) {
  return std::make_unique<WeightsCheck>(context);
}

}  // namespace attnguard
