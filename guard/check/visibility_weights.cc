// Census, step and one-hot: probes that read sums of weights.
#include <algorithm>
#include <cmath>

#include "guard/check/compare.h"
#include "guard/check/rows.h"
#include "guard/check/visibility_probes.h"
#include "guard/probe/census.h"
#include "guard/probe/one_hot.h"
#include "guard/probe/random.h"
#include "guard/probe/step.h"

namespace attnguard {
namespace {

class CensusProbe final : public VisibilityProbe {
 public:
  CensusProbe(const CheckContext& context,
              std::shared_ptr<const CensusScores> scores)
      : context_(context),
        scores_(std::move(scores)),
        code_(std::make_shared<CensusCode>(
            context.problem,
            std::min(code_columns(context.problem), CensusCode::kMostColumns),
            base_seed(context.seed))) {}

  std::string name() const override { return "census"; }

  void plan(Plan& plan) override { ticket_ = plan.request(scores_, code_); }

  void judge(const Observation& seen, FindingSink& sink) override {
    if (seen.call != ticket_.call) return;
    std::vector<double> mean;
    const std::int64_t rows = visit_rows_where(
        context_.problem,
        [&](const RowKeys& row, std::vector<double>& scratch) {
          const Judgement judgement = judge_row(seen, row, scratch);
          return judgement.judged ? suspicious_if(judgement.wrong)
                                  : Look::kUnjudged;
        },
        [&](const RowKeys& row) {
          const Judgement judgement = judge_row(seen, row, mean);
          report(row, mean, judgement.worst, judgement.bound, sink);
        });
    rows_judged_ += rows;
  }

 private:
  struct Judgement {
    bool judged = false;  // Some column could tell a key from none.
    bool wrong = false;
    double worst = 0;  // Largest excess over the declared sum, in keys.
    double bound = 0;  // Of that column.
  };

  // Leaves the row's output in the first code_->columns() of `scratch`.
  Judgement judge_row(const Observation& seen, const RowKeys& row,
                      std::vector<double>& scratch) const {
    const auto columns = static_cast<std::size_t>(code_->columns());
    scratch.resize(2 * columns);
    const double* mean = scratch.data();
    const double* sum = scratch.data() + columns;
    code_->expected_sum(row.batch, context_.problem.kv_head_of(row.head),
                        row.allowed, scratch.data() + columns);
    seen.output.load_row(row.batch, row.head, row.query, ticket_.first_column,
                         code_->columns(), scratch.data());
    const double count =
        static_cast<double>(row.allowed.count()) + sink_keys(row);
    const CensusError error = bound_for(row);
    Judgement judgement;
    for (std::size_t c = 0; c < columns; ++c) {
      const double bound = error.at(sum[c]);
      const double excess = mean[c] * count - sum[c];
      // Where rounding could hide or fake a key the column says nothing.
      if (bound > 0.4) continue;
      judgement.judged = true;
      if (std::abs(excess) <= bound) continue;
      if (judgement.wrong && std::abs(excess) <= std::abs(judgement.worst))
        continue;
      judgement = {true, true, excess, bound};
    }
    return judgement;
  }

  // What the row's sink counts for, in keys.
  double sink_keys(const RowKeys& row) const {
    return std::exp(context_.problem.sink(row.head) -
                    scores_->common_score(
                        row.head, context_.problem.row(row.batch, row.query)));
  }

  CensusError bound_for(const RowKeys& row) const {
    const std::int64_t keys = row.allowed.count();
    const double count = static_cast<double>(keys) + sink_keys(row);
    if (context_.tolerance.kind == Tolerance::Kind::kNumber)
      return {context_.tolerance.number * count, 0};
    CensusError error = census_error(
        context_.numerics, context_.problem.output_dtype(), keys, count);
    error.fixed *= 2;
    error.per_key *= 2;
    // Scores that are equal up to rounding, and a sink's rounded share.
    error.fixed += static_cast<double>(keys) *
                   std::expm1(2 * scores_->score_error(row.head));
    if (count > static_cast<double>(keys))
      error.fixed += 16 * unit_roundoff(context_.numerics.accumulator) * count;
    return error;
  }

  void report(const RowKeys& place, const std::vector<double>& mean,
              double worst, double worst_bound, FindingSink& sink) {
    const auto [b, h, i, allowed] = place;
    const CensusCode::Explanation why =
        code_->explain(b, context_.problem.kv_head_of(h), allowed, mean.data(),
                       sink_keys(place));
    const std::string row = row_name(b, h, i);
    Finding finding{.probe = "census",
                    .batch = b,
                    .head = h,
                    .query = i,
                    .observed = worst,
                    .expected = 0,
                    .bound = worst_bound};
    if (why.missing >= 0) {
      Finding miss = finding;
      miss.kind = FindingKind::kMiss;
      miss.key = why.missing;
      miss.message = row + ": does not see key " + std::to_string(why.missing) +
                     ", which it must";
      sink.add(std::move(miss));
    }
    if (why.leaked >= 0) {
      Finding leak = finding;
      leak.kind = FindingKind::kLeak;
      leak.key = why.leaked;
      leak.message = row + ": sees key " + std::to_string(why.leaked) +
                     ", which is not allowed";
      sink.add(std::move(leak));
    }
    if (why.found) return;
    finding.kind = FindingKind::kValue;
    finding.message = row +
                      ": with equal scores the mean over its keys is "
                      "not that of the " +
                      std::to_string(allowed.count()) +
                      " allowed keys (off by " + format_short(worst) +
                      " keys); more than one key is missing or extra, or "
                      "weights are not equal";
    sink.add(std::move(finding));
  }

  CheckContext context_;
  std::shared_ptr<const CensusScores> scores_;
  std::shared_ptr<const CensusCode> code_;
  Ticket ticket_;
};

// True when some row begins after key 0: mirrored thresholds say something.
bool rows_begin_late(const Problem& problem) {
  KeyRanges allowed;
  for (std::int64_t b = 0; b < problem.batch; ++b)
    for (std::int64_t i = 0; i < problem.len_q(b); ++i) {
      problem.mask.allowed(problem.row(b, i), allowed);
      if (!allowed.empty() && allowed.first() > 0) return true;
    }
  return false;
}

class StepProbe final : public VisibilityProbe {
 public:
  explicit StepProbe(const CheckContext& context) : context_(context) {
    const std::int64_t columns = code_columns(context.problem);
    const std::int64_t down =
        rows_begin_late(context.problem) ? columns / 2 : 0;
    values_ = std::make_shared<StepValues>(context.problem, columns, down,
                                           base_seed(context.seed));
  }

  std::string name() const override { return "step"; }

  void plan(Plan& plan) override {
    ticket_ = plan.request(std::make_shared<RandomScores>(
                               context_.problem, base_seed(context_.seed)),
                           values_);
  }

  void judge(const Observation& seen, FindingSink& sink) override {
    if (seen.call != ticket_.call) return;
    std::vector<double> output;
    rows_judged_ += visit_rows_where(
        context_.problem,
        [&](const RowKeys& row, std::vector<double>& scratch) {
          if (!shields_some_column(row)) return Look::kUnjudged;
          return suspicious_if(leaking_column(seen, row, scratch) >= 0);
        },
        [&](const RowKeys& row) {
          const std::int64_t c = leaking_column(seen, row, output);
          report(row.batch, row.head, row.query, cut_of(row, c),
                 values_->direction(c) == StepValues::Direction::kUp,
                 output[static_cast<std::size_t>(c)], sink);
        });
  }

 private:
  std::int64_t cut_of(const RowKeys& row, std::int64_t column) const {
    return values_->threshold(row.batch, context_.problem.kv_head_of(row.head),
                              column);
  }

  // True when the row sees no key that counts in column c, whichever entry
  // owns its keys.
  bool shielded(const RowKeys& row, std::int64_t c) const {
    const bool up = values_->direction(c) == StepValues::Direction::kUp;
    const auto beyond = [&](std::int64_t cut) {
      return up ? row.allowed.last() < cut : row.allowed.first() > cut;
    };
    if (!beyond(cut_of(row, c))) return false;
    return context_.problem.shared_prefix == 0 ||
           beyond(
               values_->threshold(0, context_.problem.kv_head_of(row.head), c));
  }

  bool shields_some_column(const RowKeys& row) const {
    for (std::int64_t c = 0; c < values_->columns(); ++c)
      if (shielded(row, c)) return true;
    return false;
  }

  // The first column that must be exactly 0 in this row and is not, or -1.
  std::int64_t leaking_column(const Observation& seen, const RowKeys& row,
                              std::vector<double>& output) const {
    const std::int64_t columns = values_->columns();
    output.resize(static_cast<std::size_t>(columns));
    seen.output.load_row(row.batch, row.head, row.query, ticket_.first_column,
                         columns, output.data());
    for (std::int64_t c = 0; c < columns; ++c)
      if (output[static_cast<std::size_t>(c)] != 0 && shielded(row, c))
        return c;
    return -1;
  }

  void report(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t cut,
              bool up, double leaked, FindingSink& sink) {
    Finding finding{.kind = FindingKind::kLeak,
                    .probe = "step",
                    .batch = b,
                    .head = h,
                    .query = i,
                    .key = cut,
                    .observed = leaked};
    finding.message = row_name(b, h, i) + ": keys " + (up ? ">= " : "<= ") +
                      std::to_string(cut) + " have weight " +
                      format_short(leaked) + ", and none of them is allowed";
    sink.add(std::move(finding));
  }

  CheckContext context_;
  std::shared_ptr<const StepValues> values_;
  Ticket ticket_;
};

class OneHotProbe final : public VisibilityProbe {
 public:
  static constexpr std::int64_t kMostCalls = 2;

  OneHotProbe(const CheckContext& context,
              std::shared_ptr<const CensusScores> scores)
      : context_(context), scores_(std::move(scores)) {}

  std::string name() const override { return "one-hot"; }

  void plan(Plan& plan) override {
    // Equal scores: every allowed key's weight is 1 / n, which no dtype loses
    // at the lengths that fit.
    const std::int64_t width = context_.problem.head_dim_v;
    for (std::int64_t key = 0; key < context_.problem.max_len_kv();
         key += width) {
      const auto values = std::make_shared<OneHot>(
          key, std::min(width, context_.problem.max_len_kv() - key));
      blocks_.push_back({values, plan.request(scores_, values)});
    }
  }

  void judge(const Observation& seen, FindingSink& sink) override {
    for (const Block& block : blocks_)
      if (block.ticket.call == seen.call) judge_block(seen, block, sink);
  }

 private:
  struct Block {
    std::shared_ptr<const OneHot> values;
    Ticket ticket;
  };

  void judge_block(const Observation& seen, const Block& block,
                   FindingSink& sink) {
    const std::int64_t columns = block.values->columns();
    const std::int64_t first = block.values->first_key();
    std::vector<double> weight(static_cast<std::size_t>(columns));
    for_each_row(context_.problem, [&](std::int64_t b, std::int64_t h,
                                       std::int64_t i,
                                       const KeyRanges& allowed) {
      ++rows_judged_;
      seen.output.load_row(b, h, i, block.ticket.first_column, columns,
                           weight.data());
      for (std::int64_t c = 0; c < columns; ++c) {
        const double shown = weight[static_cast<std::size_t>(c)];
        const bool visible = allowed.contains(first + c);
        if (visible == (shown != 0)) continue;
        Finding finding{
            .kind = visible ? FindingKind::kMiss : FindingKind::kLeak,
            .probe = "one-hot",
            .batch = b,
            .head = h,
            .query = i,
            .key = first + c,
            .observed = shown};
        finding.message =
            row_name(b, h, i) + ": " + (visible ? "does not see" : "sees") +
            " key " + std::to_string(first + c) +
            (visible ? ", which it must"
                     : ", which is not allowed: weight " + format_short(shown));
        sink.add(std::move(finding));
      }
    });
  }

  CheckContext context_;
  std::shared_ptr<const CensusScores> scores_;
  std::vector<Block> blocks_;
};

}  // namespace

VisibilityProbePtr make_census_probe(const CheckContext& context,
                                     std::string& why_not) {
  auto scores = CensusScores::make(context.problem, context.numerics,
                                   base_seed(context.seed), why_not);
  if (!scores) return nullptr;
  return std::make_unique<CensusProbe>(context, std::move(scores));
}

VisibilityProbePtr make_step_probe(const CheckContext& context, std::string&) {
  return std::make_unique<StepProbe>(context);
}

VisibilityProbePtr make_one_hot_probe(const CheckContext& context,
                                      std::string& why_not) {
  if (context.problem.max_len_kv() >
      OneHotProbe::kMostCalls * context.problem.head_dim_v) {
    why_not = "one-hot: more keys than " +
              std::to_string(OneHotProbe::kMostCalls) +
              " calls of head_dim_v columns hold";
    return nullptr;
  }
  auto scores = CensusScores::make(context.problem, context.numerics,
                                   base_seed(context.seed), why_not);
  if (!scores) return nullptr;
  return std::make_unique<OneHotProbe>(context, std::move(scores));
}

}  // namespace attnguard
