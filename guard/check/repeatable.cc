// repeatable: the same inputs give the same bits.
#include <algorithm>
#include <cstring>
#include <vector>

#include "guard/check/check_table.h"
#include "guard/check/compare.h"
#include "guard/check/control.h"
#include "guard/check/rows.h"
#include "guard/probe/random.h"

namespace attnguard {
namespace {

class Repeatable final : public Check {
 public:
  explicit Repeatable(const CheckContext& context) : context_(context) {}

  void plan(Plan& plan) override {
    const std::uint64_t seed = base_seed(context_.seed);
    const auto scores = std::make_shared<RandomScores>(context_.problem, seed);
    const auto values = std::make_shared<RandomValues>(context_.problem, seed);
    first_ = control_.plan(plan, context_);
    plan.keep_output(first_);
    // Between the repeats come other inputs: what a call leaves behind does
    // not show when the next one leaves the same. The third run shows what is
    // right twice and then answered from a cache.
    repeats_ = {plan.request(scores, values, {.repeat = 1})};
    const std::uint64_t other = mix_bits(seed);
    plan.request(
        std::make_shared<RandomScores>(context_.problem, other, 1, "between"),
        std::make_shared<RandomValues>(context_.problem, other, "between"));
    repeats_.push_back(plan.request(scores, values, {.repeat = 2}));
  }

  void judge(const Observation& seen, FindingSink& sink) override {
    control_.judge(seen);
    if (std::none_of(
            repeats_.begin(), repeats_.end(),
            [&](const Ticket& repeat) { return repeat.call == seen.call; }))
      return;
    const ConstTensorView before = seen.kept(first_.call);
    const bool numeric = context_.tolerance.kind == Tolerance::Kind::kNumber;
    for_each_row(context_.problem, [&](std::int64_t b, std::int64_t h,
                                       std::int64_t i, const KeyRanges&) {
      ++rows_;
      if (rows_equal(before, seen.output, b, h, i)) return;
      const double moved = largest_difference(before, seen.output, b, h, i);
      if (numeric && moved <= context_.tolerance.number) return;
      Finding finding{.kind = FindingKind::kNotRepeatable,
                      .probe = "random",
                      .batch = b,
                      .head = h,
                      .query = i,
                      .observed = moved};
      finding.bound = numeric ? context_.tolerance.number : 0;
      finding.message = row_name(b, h, i) +
                        ": two calls with the same inputs differ by " +
                        format_short(moved);
      sink.add(std::move(finding));
    });
  }

  void finish(const FindingSink& sink, CheckResult& result) override {
    conclude(sink, rows_ > 0 && control_.fired(), ReactsToInputs::kMissing,
             result);
    result.coverage = "3 calls, every row";
  }

 private:
  CheckContext context_;
  ReactsToInputs control_;
  Ticket first_;
  std::vector<Ticket> repeats_;
  std::int64_t rows_ = 0;
};

}  // namespace

const CheckInfo kCheckRepeatable = {
    .id = "repeatable",
    .summary = "the same inputs give the same bits",
    .cost = "3 calls",
    .explanation =
        R"(repeatable: the same inputs give the same bits

What it sees
  The random base call is made twice; every row must be the same bit for bit.
  Engines that declare themselves non-deterministic (atomics, split-KV merges
  in arrival order) are not judged: their noise is measured instead and is the
  limit for comparisons between calls.

What it looks like
  A missing barrier between tiles, workspace that the next call reads before it
  is cleared, a reduction whose order depends on threads.

What to look at in the kernel
  Shared memory reused without a barrier, atomics on the output or on the
  log-sum-exp, semaphores and scratch buffers that live across calls.
)",
    .not_applicable = [](const CheckContext& context) -> std::string {
      if (!context.deterministic)
        return "the engine declares itself non-deterministic";
      return no_row_with_keys(context.problem);
    },
    .make = [](const CheckContext& context) -> std::unique_ptr<Check> {
      return std::make_unique<Repeatable>(context);
    },
};

}  // namespace attnguard
