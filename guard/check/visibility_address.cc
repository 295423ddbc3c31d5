// Ladder and needle: one key takes the whole row, and the row's output must be
// that key's address code.
#include <algorithm>
#include <functional>

#include "guard/check/compare.h"
#include "guard/check/rows.h"
#include "guard/check/visibility_probes.h"
#include "guard/probe/address_code.h"
#include "guard/probe/ladder.h"
#include "guard/probe/needle.h"
#include "guard/probe/random.h"

namespace attnguard {
namespace {

// The key that the row must show.
using WantedKey =
    std::function<std::int64_t(std::int64_t batch, std::int64_t head,
                               std::int64_t q_index, const KeyRanges& allowed)>;

// How far an output may be from its code under the policy.
double code_tolerance(const CheckContext& context) {
  switch (context.tolerance.kind) {
    case Tolerance::Kind::kExact:
      return 0;
    case Tolerance::Kind::kNumber:
      return context.tolerance.number;
    case Tolerance::Kind::kAuto:
      break;
  }
  // One key carries the row, so no error grows with the number of keys.
  return mean_bound(context.problem, context.numerics, 1);
}

class AddressProbe final : public VisibilityProbe {
 public:
  AddressProbe(const CheckContext& context, ScorePatternPtr scores,
               std::shared_ptr<const AddressCode> code, WantedKey wanted)
      : context_(context),
        scores_(std::move(scores)),
        code_(std::move(code)),
        wanted_(std::move(wanted)) {}

  std::string name() const override { return scores_->name(); }

  void plan(Plan& plan) override { ticket_ = plan.request(scores_, code_); }

  void judge(const Observation& seen, FindingSink& sink) override {
    if (seen.call != ticket_.call) return;
    const auto columns = static_cast<std::size_t>(code_->columns());
    const double tolerance = code_tolerance(context_) * code_->amplitude();
    std::vector<double> rows(2 * columns);
    rows_judged_ += visit_rows_where(
        context_.problem,
        [&](const RowKeys& row, std::vector<double>& scratch) {
          scratch.resize(2 * columns);
          load(seen, row, scratch);
          double worst = 0, residue = 0;
          for (std::size_t c = 0; c < columns; ++c) {
            const double difference = scratch[c] - scratch[columns + c];
            residue += difference - difference;  // NaN stays NaN
            worst = std::max(worst, std::abs(difference));
          }
          return suspicious_if(residue != 0 || worst > tolerance);
        },
        [&](const RowKeys& row) {
          const std::int64_t key = load(seen, row, rows);
          report(row.batch, row.head, row.query, key, row.allowed,
                 {rows.begin(), rows.begin() + code_->columns()},
                 {rows.begin() + code_->columns(), rows.end()}, tolerance,
                 sink);
        });
  }

 private:
  // The row's output and then the code that it must show; the wanted key.
  std::int64_t load(const Observation& seen, const RowKeys& row,
                    std::vector<double>& rows) const {
    const std::int64_t columns = code_->columns();
    const std::int64_t key =
        wanted_(row.batch, row.head, row.query, row.allowed);
    seen.output.load_row(row.batch, row.head, row.query, ticket_.first_column,
                         columns, rows.data());
    code_->value_row(context_.problem.owner(row.batch, key),
                     context_.problem.kv_head_of(row.head), key,
                     rows.data() + columns);
    return key;
  }

  // The weight of the wanted key, were the other columns noise: the mean of
  // output * code over the columns of magnitude 1 and more.
  static double share_of(const std::vector<double>& output,
                         const std::vector<double>& code) {
    double dot = 0, norm = 0;
    for (std::size_t c = 0; c < output.size(); ++c) {
      dot += output[c] * code[c];
      norm += code[c] * code[c];
    }
    return dot / norm;
  }

  void report(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t key,
              const KeyRanges& allowed, const std::vector<double>& output,
              const std::vector<double>& expected, double tolerance,
              FindingSink& sink) {
    Finding finding{.probe = name(),
                    .batch = b,
                    .head = h,
                    .query = i,
                    .key = key,
                    .observed = share_of(output, expected),
                    .expected = 1,
                    .bound = tolerance};
    const std::string row = row_name(b, h, i);
    const std::int64_t g = context_.problem.kv_head_of(h);
    const auto shown =
        code_->decode(output.data(), 0.25 * code_->amplitude() + 0.2);
    if (!shown) {
      finding.kind = FindingKind::kMiss;
      finding.message = row + ": must show key " + std::to_string(key) +
                        " alone and shows no single key (its weight is about " +
                        format_short(finding.observed) + ")";
    } else if (shown->batch != context_.problem.owner(b, shown->kv_index) ||
               shown->kv_head != g) {
      finding.kind = FindingKind::kLeak;
      finding.key = shown->kv_index;
      finding.message = row + ": reads key " + std::to_string(shown->kv_index) +
                        " of batch " + std::to_string(shown->batch) +
                        ", KV head " + std::to_string(shown->kv_head) +
                        "; its own is batch " + std::to_string(b) +
                        ", KV head " + std::to_string(g);
    } else if (shown->kv_index == key) {
      finding.kind = FindingKind::kValue;
      finding.message = row + ": shows key " + std::to_string(key) +
                        " but not exactly: its weight is about " +
                        format_short(finding.observed);
    } else if (allowed.contains(shown->kv_index)) {
      finding.kind = FindingKind::kMiss;
      finding.observed = 0;
      finding.message = row + ": does not see key " + std::to_string(key) +
                        ", which it must; it shows key " +
                        std::to_string(shown->kv_index) + " instead";
    } else {
      finding.kind = FindingKind::kLeak;
      finding.key = shown->kv_index;
      finding.observed = 1;
      finding.expected = 0;
      finding.message = row + ": sees key " + std::to_string(shown->kv_index) +
                        ", which is not allowed";
    }
    sink.add(std::move(finding));
  }

  CheckContext context_;
  ScorePatternPtr scores_;
  std::shared_ptr<const AddressCode> code_;
  WantedKey wanted_;
  Ticket ticket_;
};

std::shared_ptr<const AddressCode> make_code(const CheckContext& context,
                                             std::string_view probe,
                                             std::string& why_not) {
  auto code = AddressCode::make(context.problem, code_columns(context.problem));
  if (!code)
    why_not = std::string(probe) +
              ": head_dim_v has too few columns for the keys' addresses";
  return code;
}

VisibilityProbePtr make_ladder(const CheckContext& context,
                               LadderScores::Direction direction,
                               std::string& why_not) {
  const bool up = direction == LadderScores::Direction::kUp;
  const std::string name = up ? "ladder-up" : "ladder-down";
  const auto code = make_code(context, name, why_not);
  if (!code) return nullptr;
  const double gap = dominance_gap(context.numerics, code->amplitude());
  const auto scores = LadderScores::make(context.problem, context.numerics,
                                         direction, gap, why_not);
  if (!scores) {
    why_not = name + ": " + why_not;
    return nullptr;
  }
  const auto wanted = [up](std::int64_t, std::int64_t, std::int64_t,
                           const KeyRanges& allowed) {
    return up ? allowed.last() : allowed.first();
  };
  return std::make_unique<AddressProbe>(context, scores, code, wanted);
}

}  // namespace

VisibilityProbePtr make_ladder_up_probe(const CheckContext& context,
                                        std::string& why_not) {
  return make_ladder(context, LadderScores::Direction::kUp, why_not);
}

VisibilityProbePtr make_ladder_down_probe(const CheckContext& context,
                                          std::string& why_not) {
  return make_ladder(context, LadderScores::Direction::kDown, why_not);
}

VisibilityProbePtr make_needle_probe(const CheckContext& context,
                                     std::string& why_not) {
  const auto code = make_code(context, "needle", why_not);
  if (!code) return nullptr;
  const double gap =
      dominance_gap(context.numerics, code->amplitude()) +
      std::log(std::max<double>(
          static_cast<double>(context.problem.max_len_kv()), 1.0));
  const auto scores = NeedleScores::make(context.problem, context.numerics, gap,
                                         base_seed(context.seed), why_not);
  if (!scores) {
    why_not = "needle: " + why_not;
    return nullptr;
  }
  const auto wanted = [scores](std::int64_t b, std::int64_t h, std::int64_t i,
                               const KeyRanges& allowed) {
    return scores->target(b, h, i, allowed);
  };
  return std::make_unique<AddressProbe>(context, scores, code, wanted);
}

}  // namespace attnguard
