// finite: finite inputs give finite outputs.
#include "guard/check/check_table.h"
#include "guard/check/rows.h"
#include "guard/probe/random.h"

namespace attnguard {
namespace {

class Finite final : public Check {
 public:
  explicit Finite(const CheckContext& context) : context_(context) {}

  void plan(Plan& plan) override {
    const std::uint64_t seed = base_seed(context_.seed);
    plan.request(std::make_shared<RandomScores>(context_.problem, seed),
                 std::make_shared<RandomValues>(context_.problem, seed));
  }

  void judge(const Observation& seen, FindingSink& sink) override {
    const std::int64_t columns = context_.problem.head_dim_v;
    std::vector<double> row(static_cast<std::size_t>(columns));
    for_each_row(context_.problem, [&](std::int64_t b, std::int64_t h,
                                       std::int64_t i, const KeyRanges&) {
      seen.output.load_row(b, h, i, 0, columns, row.data());
      ++rows_;
      // Any NaN or Inf makes the sum of x - x non-zero; one pass, no branch.
      double residue = 0;
      for (double x : row) residue += x - x;
      if (residue == 0) return;
      for (std::int64_t c = 0; c < columns; ++c)
        if (!std::isfinite(row[static_cast<std::size_t>(c)]))
          return report(seen, b, h, i, c, row[static_cast<std::size_t>(c)],
                        sink);
    });
    ++calls_;
  }

  void finish(const FindingSink& sink, CheckResult& result) override {
    conclude(sink, rows_ > 0, "no row was judged", result);
    result.coverage = std::to_string(calls_) + " calls, every output element";
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
  std::int64_t rows_ = 0;
  std::int64_t calls_ = 0;
};

}  // namespace

const CheckInfo kFinite = {
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
      return has_row_with_keys(context.problem) ? ""
                                                : "no row has an allowed key";
    },
    .make = [](const CheckContext& context) -> std::unique_ptr<Check> {
      return std::make_unique<Finite>(context);
    },
};

}  // namespace attnguard
