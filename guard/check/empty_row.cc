// empty-row: rows with no allowed key give what the problem says.
#include <cmath>

#include "guard/check/check_table.h"
#include "guard/check/compare.h"
#include "guard/check/control.h"
#include "guard/check/rows.h"
#include "guard/engine/reference.h"

namespace attnguard {
namespace {

bool has_empty_row(const Problem& problem) {
  KeyRanges allowed;
  for (std::int64_t b = 0; b < problem.batch; ++b)
    for (std::int64_t i = 0; i < problem.len_q(b); ++i) {
      problem.mask.allowed(problem.row(b, i), allowed);
      if (allowed.empty()) return true;
    }
  return false;
}

class EmptyRowCheck final : public Check {
 public:
  explicit EmptyRowCheck(const CheckContext& context) : context_(context) {}

  void plan(Plan& plan) override { ticket_ = control_.plan(plan, context_); }

  void judge(const Observation& seen, FindingSink& sink) override {
    control_.judge(seen);
    if (seen.call != ticket_.call) return;
    const Problem& problem = context_.problem;
    KeyRanges allowed;
    for (std::int64_t b = 0; b < problem.batch; ++b)
      for (std::int64_t i = 0; i < problem.len_q(b); ++i) {
        problem.mask.allowed(problem.row(b, i), allowed);
        if (!allowed.empty()) continue;
        for (std::int64_t h = 0; h < problem.num_heads; ++h)
          judge_row(seen, b, h, i, sink);
      }
  }

  void finish(const FindingSink& sink, CheckResult& result) override {
    // Where every row is empty the output has no reason to vary.
    conclude(
        sink,
        rows_ > 0 && (control_.fired() || !has_row_with_keys(context_.problem)),
        ReactsToInputs::kMissing, result);
    result.coverage = std::to_string(rows_) + " rows without an allowed key";
  }

 private:
  void judge_row(const Observation& seen, std::int64_t b, std::int64_t h,
                 std::int64_t i, FindingSink& sink) {
    const Problem& problem = context_.problem;
    ++rows_;
    ReferenceRow row;
    reference_row({&problem, seen.query, seen.key, seen.value}, b, h, i, row);
    std::vector<double> output(static_cast<std::size_t>(problem.head_dim_v));
    seen.output.load_row(b, h, i, 0, problem.head_dim_v, output.data());
    for (std::int64_t c = 0; c < problem.head_dim_v; ++c) {
      const double observed = output[static_cast<std::size_t>(c)];
      const double expected = row.output[static_cast<std::size_t>(c)];
      double bound = reference_bound(problem, context_.numerics, row, c);
      if (context_.tolerance.kind == Tolerance::Kind::kNumber)
        bound = context_.tolerance.number;
      const bool fine = std::isnan(expected)
                            ? std::isnan(observed)
                            : std::abs(observed - expected) <= bound;
      if (fine) continue;
      Finding finding{.kind = FindingKind::kValue,
                      .probe = seen.planned->scores->name(),
                      .batch = b,
                      .head = h,
                      .query = i,
                      .channel = c,
                      .observed = observed,
                      .expected = expected,
                      .bound = bound};
      finding.message = row_name(b, h, i) +
                        " has no allowed key: output channel " +
                        std::to_string(c) + " is " + format_short(observed) +
                        ", and the rule is empty_row=" +
                        std::string(empty_row_name(problem.empty_row));
      sink.add(std::move(finding));
      return;
    }
  }

  CheckContext context_;
  ReactsToInputs control_;
  Ticket ticket_;
  std::int64_t rows_ = 0;
};

}  // namespace

const CheckInfo kCheckEmptyRow = {
    .id = "empty-row",
    .summary = "rows with no allowed key give what the problem says",
    .cost = "no call of its own when other checks run",
    .explanation =
        R"(empty-row: rows with no allowed key give what the problem says

What it sees
  Rows that may attend to no key: more queries than keys under a bottom-right
  causal mask, an empty sequence, padding on the left. Engines differ in what
  they promise, so the problem says it (empty_row): zero, nan, mean (the mean
  of the entry's values), or any.

      seq_len_q = 4, seq_len_kv = 2, causal_bottom_right
        row 0  ..     empty      FlashAttention, PyTorch, ggml: 0
        row 1  ..     empty      softmax over finite sentinels: mean(V)
        row 2  #.                softmax over -inf: NaN
        row 3  ##

What it looks like
  0 / 0, exp(-inf - -inf), a finite sentinel that makes all masked keys equal
  (the row sum is then exactly 1, and passes), skipped tiles whose output is
  never written.

Real reports
  microsoft/onnxruntime#28904 (mean of all masked values),
  pytorch/pytorch#193632 (fully masked blocks skipped without writing).

What to look at in the kernel
  The final division; what happens when no tile of a row is visited.

Tolerance
  auto: exactly 0 or NaN; for `mean` the bound of `reference`.
)",
    .not_applicable = [](const CheckContext& context) -> std::string {
      if (context.problem.empty_row == EmptyRow::kAny)
        return "empty_row=any promises nothing";
      return has_empty_row(context.problem) ? ""
                                            : "every row has an allowed key";
    },
    .make = [](const CheckContext& context) -> std::unique_ptr<Check> {
      return std::make_unique<EmptyRowCheck>(context);
    },
};

}  // namespace attnguard
