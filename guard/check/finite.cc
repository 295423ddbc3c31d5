// finite: finite inputs give finite outputs.
#include "guard/check/check_table.h"
#include "guard/check/control.h"
#include "guard/check/rows.h"

namespace attnguard {
namespace {

class Finite final : public Check {
 public:
  explicit Finite(const CheckContext& context) : context_(context) {}

  void plan(Plan& plan) override { control_.plan(plan, context_); }

  void judge(const Observation& seen, FindingSink& sink) override {
    control_.judge(seen);
    // NaN in places that no row may read has a check of its own.
    if (seen.planned->mode.unused == UnusedFill::kNan) return;
    const auto first_bad = [&](const RowKeys& row) {
      return first_not_finite(context_.problem.output_dtype(),
                              seen.output.at(row.batch, row.head, row.query),
                              seen.output.strides[3],
                              context_.problem.head_dim_v);
    };
    rows_ += visit_rows_where(
        *seen.problem,
        [&](const RowKeys& row, std::vector<double>&) {
          return suspicious_if(first_bad(row) >= 0);
        },
        [&](const RowKeys& row) {
          const std::int64_t channel = first_bad(row);
          double value = 0;
          seen.output.load_row(row.batch, row.head, row.query, channel, 1,
                               &value);
          report(seen, row.batch, row.head, row.query, channel, value, sink);
        });
    ++calls_;
  }

  void finish(const FindingSink& sink, CheckResult& result) override {
    conclude(sink, rows_ > 0 && control_.fired(), ReactsToInputs::kMissing,
             result);
    result.coverage =
        std::to_string(calls_) + " calls, every row with an allowed key";
  }

 private:
  void report(const Observation& seen, std::int64_t b, std::int64_t h,
              std::int64_t i, std::int64_t c, double value, FindingSink& sink) {
    const bool unwritten =
        is_poison(context_.problem.output_dtype(), seen.output.at(b, h, i, c));
    Finding finding{.kind = FindingKind::kNonFinite,
                    .probe = seen.planned->scores->name(),
                    .batch = b,
                    .head = h,
                    .query = i,
                    .channel = c,
                    .observed = value};
    finding.message = row_name(b, h, i) + ": output channel " +
                      std::to_string(c) +
                      (unwritten ? " was never written"
                                 : " is not finite although every input is");
    sink.add(std::move(finding));
  }

  CheckContext context_;
  ReactsToInputs control_;
  std::int64_t rows_ = 0;
  std::int64_t calls_ = 0;
};

}  // namespace

const CheckInfo kCheckFinite = {
    .id = "finite",
    .summary = "finite inputs give finite outputs",
    .cost = "passive",
    .explanation =
        R"(finite: finite inputs give finite outputs

What it sees
  NaN or Inf in any row that has at least one allowed key, in every call that
  the other checks make: random inputs, score ranges of thousands of nats,
  values a thousand times larger in later tokens.

What it looks like
  inf - inf when the running maximum of an all-masked tile is -inf, an exp that
  overflows because the maximum was not subtracted, 0/0 in a row whose tiles
  are all skipped, fp16 accumulators that overflow, output rows that were never
  written (then `memory` reports them too).

What to look at in the kernel
  The first tile of each row: is the running maximum initialised to -inf, and
  is exp(-inf - -inf) avoided? The last, partial tile. The final division when
  the denominator may be 0.
)",
    .not_applicable = [](const CheckContext& context) -> std::string {
      return no_row_with_keys(context.problem);
    },
    .make = [](const CheckContext& context) -> std::unique_ptr<Check> {
      return std::make_unique<Finite>(context);
    },
};

}  // namespace attnguard
