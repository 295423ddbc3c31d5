// reference: outputs agree with fp64 attention within what rounding explains.
#include "guard/engine/reference.h"

#include <algorithm>
#include <optional>
#include <set>

#include "guard/check/check_table.h"
#include "guard/check/compare.h"
#include "guard/check/rows.h"
#include "guard/probe/random.h"
#include "guard/probe/step.h"

namespace attnguard {
namespace {

// Multiply-adds that the reference may cost on one problem, about 10 ms.
constexpr double kBudget = 2e7;
constexpr std::int64_t kFewestRows = 32;

struct Row {
  std::int64_t batch, head, query;
  auto operator<=>(const Row&) const = default;
};

class Reference final : public Check {
 public:
  explicit Reference(const CheckContext& context) : context_(context) {}

  void plan(Plan& plan) override {
    const std::uint64_t seed = base_seed(context_.seed);
    ticket_ =
        plan.request(std::make_shared<RandomScores>(context_.problem, seed),
                     std::make_shared<RandomValues>(context_.problem, seed));
  }

  void judge(const Observation& seen, FindingSink& sink) override {
    if (seen.call != ticket_.call) return;
    const ReferenceInputs given{&context_.problem, seen.query, seen.key,
                                seen.value};
    const std::vector<Row> rows = choose_rows();
    // Decoding every key once pays when each is read by several rows.
    std::optional<DecodedInputs> decoded;
    if (rows_with_keys_ == static_cast<std::int64_t>(rows.size()))
      decoded.emplace(given);
    const ReferenceInputs inputs = decoded ? decoded->inputs() : given;
    std::vector<std::optional<Finding>> found(rows.size());
#pragma omp parallel
    {
      ReferenceRow row;
#pragma omp for schedule(dynamic)
      for (std::size_t n = 0; n < rows.size(); ++n) {
        reference_row(inputs, rows[n].batch, rows[n].head, rows[n].query, row);
        found[n] = judge_row(seen, rows[n], row);
      }
    }
    judged_ += static_cast<std::int64_t>(rows.size());
    for (std::optional<Finding>& finding : found)
      if (finding) sink.add(std::move(*finding));
  }

  void finish(const FindingSink& sink, CheckResult& result) override {
    conclude(sink, judged_ > 0, "no row with an allowed key was judged",
             result);
    result.coverage = judged_ == rows_with_keys_
                          ? "every row"
                          : std::to_string(judged_) + " of " +
                                std::to_string(rows_with_keys_) + " rows";
  }

 private:
  // Every row when that is cheap; otherwise first, last and tile-edge rows in
  // rotation over heads, then random ones.
  std::vector<Row> choose_rows() {
    const Problem& problem = context_.problem;
    std::vector<Row> all;
    for_each_row(problem, [&](std::int64_t b, std::int64_t h, std::int64_t i,
                              const KeyRanges&) {
      all.push_back({b, h, i});
    });
    rows_with_keys_ = static_cast<std::int64_t>(all.size());
    const double row_cost =
        static_cast<double>(problem.max_len_kv()) *
        static_cast<double>(problem.head_dim_qk + 2 * problem.head_dim_v);
    const double budget =
        kBudget * (context_.coverage == Coverage::kFull ? 16 : 1);
    const auto affordable =
        std::max(static_cast<std::int64_t>(budget / std::max(row_cost, 1.0)),
                 kFewestRows);
    if (rows_with_keys_ <= affordable) return all;
    std::set<Row> chosen;
    std::int64_t turn = 0;
    for (std::int64_t b = 0; b < problem.batch; ++b) {
      std::vector<std::int64_t> edges = edge_cuts(problem.len_q(b));
      edges.push_back(0);
      for (std::int64_t edge : edges) {
        const Row row{b, turn++ % problem.num_heads, edge};
        if (static_cast<std::int64_t>(chosen.size()) < affordable / 2 &&
            has_keys(row))
          chosen.insert(row);
      }
    }
    for (std::uint64_t draw = 0;
         static_cast<std::int64_t>(chosen.size()) < affordable; ++draw) {
      const std::uint64_t bits =
          derive_seed(base_seed(context_.seed) ^ 0x726566, draw);
      chosen.insert(
          all[static_cast<std::size_t>(uniform_below(bits, rows_with_keys_))]);
    }
    return {chosen.begin(), chosen.end()};
  }

  bool has_keys(const Row& row) const {
    if (row.query >= context_.problem.len_q(row.batch)) return false;
    KeyRanges allowed;
    context_.problem.mask.allowed(context_.problem.row(row.batch, row.query),
                                  allowed);
    return !allowed.empty();
  }

  std::optional<Finding> judge_row(const Observation& seen, const Row& place,
                                   const ReferenceRow& row) const {
    const Problem& problem = context_.problem;
    std::vector<double> output(static_cast<std::size_t>(problem.head_dim_v));
    seen.output.load_row(place.batch, place.head, place.query, 0,
                         problem.head_dim_v, output.data());
    std::int64_t worst = -1;
    double worst_excess = 0;
    for (std::int64_t c = 0; c < problem.head_dim_v; ++c) {
      const double difference =
          std::abs(output[static_cast<std::size_t>(c)] - expected(row, c));
      const double bound = bound_for(row, c);
      if (difference <= bound) continue;
      const double excess = difference / std::max(bound, 1e-300);
      if (worst >= 0 && !(excess > worst_excess)) continue;
      worst = c;
      worst_excess = excess;
    }
    if (worst < 0) return std::nullopt;
    Finding finding{.kind = FindingKind::kValue,
                    .probe = "random",
                    .batch = place.batch,
                    .head = place.head,
                    .query = place.query,
                    .channel = worst,
                    .observed = output[static_cast<std::size_t>(worst)],
                    .expected = expected(row, worst),
                    .bound = bound_for(row, worst)};
    finding.message =
        row_name(place.batch, place.head, place.query) + ": output channel " +
        std::to_string(worst) + " is " + format_short(finding.observed) +
        ", fp64 attention gives " + format_short(finding.expected) +
        " (rounding explains " + format_short(finding.bound) + ")";
    return finding;
  }

  double expected(const ReferenceRow& row, std::int64_t c) const {
    const double value = row.output[static_cast<std::size_t>(c)];
    return context_.tolerance.kind == Tolerance::Kind::kExact
               ? quantize(context_.problem.output_dtype(), value)
               : value;
  }

  double bound_for(const ReferenceRow& row, std::int64_t c) const {
    switch (context_.tolerance.kind) {
      case Tolerance::Kind::kExact:
        return 0;
      case Tolerance::Kind::kNumber:
        return context_.tolerance.number;
      case Tolerance::Kind::kAuto:
        break;
    }
    return reference_bound(context_.problem, context_.numerics, row, c);
  }

  CheckContext context_;
  Ticket ticket_;
  std::int64_t judged_ = 0;
  std::int64_t rows_with_keys_ = 0;
};

}  // namespace

const CheckInfo kReference = {
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
