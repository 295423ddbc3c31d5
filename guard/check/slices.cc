#include "guard/check/slices.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "guard/check/compare.h"
#include "guard/check/control.h"
#include "guard/check/reference_rows.h"
#include "guard/check/rows.h"

namespace attnguard {
namespace {

class SliceCheck final : public Check {
 public:
  SliceCheck(const CheckContext& context, Slices slices)
      : context_(context), slices_(std::move(slices)) {}

  void plan(Plan& plan) override {
    const Problem& problem = context_.problem;
    const std::uint64_t seed = base_seed(context_.seed);
    base_ = control_.plan(plan, context_);
    plan.keep_output(base_);
    const auto scores = std::make_shared<RandomScores>(problem, seed);
    const auto values = std::make_shared<RandomValues>(problem, seed);
    for (const auto& slice : slices_)
      tickets_.push_back(plan.request(sliced_scores(problem, slice, scores),
                                      sliced_values(problem, slice, values),
                                      {.problem = slice->problem}));
  }

  void judge(const Observation& seen, FindingSink& sink) override {
    control_.judge(seen);
    for (std::size_t n = 0; n < slices_.size(); ++n)
      if (tickets_[n].call == seen.call) judge_slice(seen, *slices_[n], sink);
  }

  void finish(const FindingSink& sink, CheckResult& result) override {
    conclude(sink, rows_ > 0 && control_.fired(), ReactsToInputs::kMissing,
             result);
    result.coverage = std::to_string(slices_.size()) + " calls (";
    for (const auto& slice : slices_)
      result.coverage += (slice == slices_.front() ? "" : ", ") + slice->name;
    result.coverage += "), " + std::to_string(rows_) + " rows";
  }

 private:
  void judge_slice(const Observation& seen, const Slice& slice,
                   FindingSink& sink) {
    const RowChoice choice = choose_rows(*slice.problem, context_.coverage,
                                         context_.seed, kQuarterBudget);
    const Numerics numerics = numerics_of_part(slice);
    std::vector<std::optional<Finding>> found(choice.rows.size());
    for_each_reference_row(
        seen, choice, [&](std::size_t n, const ReferenceRow& row) {
          found[n] = judge_row(seen, slice, numerics, choice.rows[n], row);
        });
    rows_ += static_cast<std::int64_t>(choice.rows.size());
    for (std::optional<Finding>& finding : found)
      if (finding) sink.add(std::move(*finding));
  }

  // Another shape may be another path, with its own precision.
  Numerics numerics_of_part(const Slice& slice) const {
    return context_.engine ? numerics_of(*context_.engine, *slice.problem)
                           : context_.numerics;
  }

  std::optional<Finding> judge_row(const Observation& seen, const Slice& slice,
                                   const Numerics& numerics, const RowIndex& at,
                                   const ReferenceRow& row) const {
    const std::int64_t channels = context_.problem.head_dim_v;
    const std::int64_t b = slice.whole_batch(at.batch);
    const std::int64_t i =
        at.query + slice.first_query[static_cast<std::size_t>(at.batch)];
    std::vector<double> part(static_cast<std::size_t>(channels));
    std::vector<double> whole(part.size());
    seen.output.load_row(at.batch, at.head, at.query, 0, channels, part.data());
    seen.kept(base_.call).load_row(b, at.head, i, 0, channels, whole.data());
    for (std::int64_t c = 0; c < channels; ++c) {
      const double difference = std::abs(part[static_cast<std::size_t>(c)] -
                                         whole[static_cast<std::size_t>(c)]);
      const double bound = bound_for(*slice.problem, numerics, row, c);
      if (difference <= bound) continue;
      Finding finding{.kind = FindingKind::kValue,
                      .probe = slice.name,
                      .batch = b,
                      .head = at.head,
                      .query = i,
                      .channel = c,
                      .observed = part[static_cast<std::size_t>(c)],
                      .expected = whole[static_cast<std::size_t>(c)],
                      .bound = bound};
      finding.message =
          row_name(b, at.head, i) + ": output channel " + std::to_string(c) +
          " is " + format_short(finding.observed) + " for " + slice.name +
          " and " + format_short(finding.expected) +
          " in the whole call (rounding explains " + format_short(bound) + ")";
      return finding;
    }
    return std::nullopt;
  }

  // Both sides round.
  double bound_for(const Problem& problem, const Numerics& numerics,
                   const ReferenceRow& row, std::int64_t c) const {
    switch (context_.tolerance.kind) {
      case Tolerance::Kind::kExact:
        return 0;
      case Tolerance::Kind::kNumber:
        return context_.tolerance.number;
      case Tolerance::Kind::kAuto:
        break;
    }
    return reference_bound(problem, context_.numerics, row, c) +
           reference_bound(problem, numerics, row, c);
  }

  CheckContext context_;
  Slices slices_;
  ReactsToInputs control_;
  Ticket base_;
  std::vector<Ticket> tickets_;
  std::int64_t rows_ = 0;
};

}  // namespace

Slices runnable_slices(const CheckContext& context, const Slices& candidates) {
  Slices slices;
  for (const auto& slice : candidates) {
    if (!slice) continue;
    if (context.engine != nullptr &&
        !unsupported_reason(*context.engine, *slice->problem).empty())
      continue;
    const bool known =
        std::any_of(slices.begin(), slices.end(), [&](const auto& other) {
          return other->entry == slice->entry &&
                 other->first_query == slice->first_query &&
                 *other->problem == *slice->problem;
        });
    if (!known) slices.push_back(slice);
  }
  return slices;
}

std::unique_ptr<Check> make_slices(const CheckContext& context, Slices slices) {
  return std::make_unique<SliceCheck>(context, std::move(slices));
}

}  // namespace attnguard
