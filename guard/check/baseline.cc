#include "guard/check/baseline.h"

#include "guard/check/compare.h"
#include "guard/check/rows.h"
#include "guard/probe/random.h"

namespace attnguard {
namespace {

// Noise of an engine that declares itself non-deterministic, on values of
// about 1: beyond this comparisons say nothing.
constexpr double kMostNoise = 0.05;

}  // namespace

void Baseline::plan(Plan& plan, const CheckContext& context) {
  const std::uint64_t seed = base_seed(context.seed);
  const auto scores = std::make_shared<RandomScores>(context.problem, seed);
  const auto values = std::make_shared<RandomValues>(context.problem, seed);
  base_ = plan.request(scores, values);
  plan.keep_output(base_);
  if (!context.deterministic)
    repeat_ = plan.request(scores, values, {.repeat = 1});
  if (context.tolerance.kind == Tolerance::Kind::kNumber)
    limit_ = context.tolerance.number;
  measures_noise_ = context.tolerance.kind == Tolerance::Kind::kAuto &&
                    !context.deterministic;
}

void Baseline::plan_control(Plan& plan, const CheckContext& context) {
  const std::uint64_t other = mix_bits(base_seed(context.seed));
  control_ = plan.request(
      std::make_shared<RandomScores>(context.problem, other, 1, "control"),
      std::make_shared<RandomValues>(context.problem, other, "control"));
}

void Baseline::judge(const Observation& seen) {
  if (seen.call == control_.call)
    for_each_row(*seen.problem, [&](std::int64_t b, std::int64_t h,
                                    std::int64_t i, const KeyRanges&) {
      double change = 0;
      rows_moved_ += moved(seen, b, h, i, change);
    });
  if (seen.call != repeat_.call) return;
  const ConstTensorView base = seen.kept(base_.call);
  for_each_row(*seen.problem, [&](std::int64_t b, std::int64_t h,
                                  std::int64_t i, const KeyRanges&) {
    const double change = largest_difference(base, seen.output, b, h, i);
    // Written so that NaN, too, becomes the noise and stays it.
    if (!(change <= noise_)) noise_ = change;
  });
  if (measures_noise_) limit_ = 4 * noise_;
}

bool Baseline::moved(const Observation& seen, std::int64_t batch,
                     std::int64_t head, std::int64_t query,
                     double& change) const {
  const ConstTensorView base = seen.kept(base_.call);
  if (rows_equal(base, seen.output, batch, head, query)) return false;
  change = largest_difference(base, seen.output, batch, head, query);
  return !(limit_ >= 0 && change <= limit_);
}

bool Baseline::too_noisy(CheckResult& result) const {
  if (noise_ <= kMostNoise) return false;
  result.verdict = Verdict::kInconclusive;
  result.note = "repeated calls differ by " + format_short(noise_) +
                ": too much noise to judge by";
  return true;
}

}  // namespace attnguard
