// model-loss-gap: the loss of one pass is that of reading token by token.
#include <fmt/format.h>

#include <cmath>

#include "guard/model/model_check_table.h"

namespace attnguard {
namespace {

// Positions whose next token has an infinite loss both ways are left out.
LossGap measure(const ModelCheckContext& context, const Logits& steps) {
  LossGap loss;
  for (std::int64_t i = 0; i + 1 < context.length(); ++i) {
    const std::int32_t next = context.tokens[static_cast<std::size_t>(i) + 1];
    const double one = negative_log_likelihood(context.base.row(i), next);
    const double other = negative_log_likelihood(steps.row(i), next);
    if (!std::isfinite(one) && !std::isfinite(other)) continue;
    ++loss.positions;
    loss.one_pass += one;
    loss.token_by_token += other;
    loss.mean_difference += std::abs(one - other);
    // Moving every logit by at most x moves the loss by at most 2 x.
    loss.bound +=
        2 *
        context.bound(compare_rows(context.base.row(i), steps.row(i)).scale);
  }
  const auto n = static_cast<double>(loss.positions);
  if (loss.positions == 0) return loss;
  loss.one_pass /= n;
  loss.token_by_token /= n;
  loss.mean_difference /= n;
  loss.bound /= n;
  return loss;
}

Finding finding_of(const LossGap& loss) {
  const bool reads_ahead = loss.gap() > loss.bound;
  Finding finding{
      .kind = reads_ahead ? FindingKind::kLeak : FindingKind::kValue,
      .probe = "loss",
      .batch = 0,
      .observed = loss.one_pass,
      .expected = loss.token_by_token,
      .bound = loss.bound};
  if (reads_ahead)
    finding.message = fmt::format(
        "one pass over the text reads ahead: its loss is {:.4f} nats per "
        "token, "
        "{:.4f} less than the {:.4f} of reading token by token",
        loss.one_pass, loss.gap(), loss.token_by_token);
  else
    finding.message = fmt::format(
        "one pass and reading token by token disagree: {:.4f} and {:.4f} nats "
        "per token, and each position's loss differs by {} on average; "
        "rounding explains {}",
        loss.one_pass, loss.token_by_token, short_number(loss.mean_difference),
        short_number(loss.bound));
  return finding;
}

Status run_loss_gap(ModelCheckContext& context, CheckResult& result) {
  const std::int64_t one_by_one[] = {1};
  const Result<Logits> steps =
      context.model.incremental
          ? context.runner.in_pieces(context.tokens, one_by_one)
          : context.runner.by_prefixes(context.tokens);
  if (!steps.ok()) return steps.status();
  const Result<Sensitivity> sensitivity = context.sensitivity();
  if (!sensitivity.ok()) return sensitivity.status();
  const LossGap loss = measure(context, steps.value());
  context.loss = loss;
  result.coverage = fmt::format(
      "{} positions; one pass {:.4f}, token by token {:.4f} nats per token",
      loss.positions, loss.one_pass, loss.token_by_token);
  ModelFindings findings;
  if (loss.positions == 0) {
    result.verdict = Verdict::kInconclusive;
    result.note = "no position has a finite loss";
  } else if (!(loss.mean_difference <= loss.bound)) {
    findings.add(finding_of(loss));
    result.verdict = Verdict::kViolation;
  } else if (sensitivity.value().median_bounds < 2) {
    result.verdict = Verdict::kInconclusive;
    result.note =
        "other tokens move the logits by less than rounding may: no gap could "
        "be seen";
  } else {
    result.verdict = Verdict::kPass;
  }
  findings.move_to(result);
  return ok_status();
}

}  // namespace

const ModelCheckInfo kModelLossGap = {
    .id = "model-loss-gap",
    .summary = "the loss of one pass is that of reading token by token",
    .cost = "the text token by token, or each prefix without a cache",
    .explanation =
        R"(model-loss-gap: the loss of one pass is that of reading token by token

What it sees
  The mean loss of the text, in nats per token, once teacher-forced in one pass,
  as in training, and once token by token, as in generation, where no later token
  exists. The gap is what one pass gains by reading its own future. The positions
  are also compared one by one, since a model that was not trained to use a leak
  loses by it as often as it gains: with random weights or random tokens the gap
  may have either sign, and the mean difference is what shows the leak.

What it looks like
  A loss that is too good, and text that is not.

Where to look
  `explain model-future` if the gap is positive; `explain model-incremental` if
  that check fails and model-future passes.
)",
    .not_applicable = [](const Model& model) -> std::string {
      return model.most_tokens_per_call == 1 ? kOneTokenAtATime : "";
    },
    .run = run_loss_gap,
};

}  // namespace attnguard
