// model-finite: logits are numbers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "guard/model/model_check_table.h"

namespace attnguard {
namespace {

// -inf is legal: it bans an entry of the vocabulary.
bool is_bad(float logit) {
  return std::isnan(logit) || (std::isinf(logit) && logit > 0);
}

Finding bad_row(std::int64_t row, std::int64_t entry, double value) {
  Finding finding{.kind = FindingKind::kNonFinite,
                  .probe = "one-pass",
                  .batch = 0,
                  .query = row,
                  .channel = entry,
                  .observed = value};
  finding.message =
      entry < 0 ? fmt::format("all logits of token {} are -inf", row)
                : fmt::format("logit {} of token {} is {}", entry, row, value);
  return finding;
}

Status run_finite(ModelCheckContext& context, CheckResult& result) {
  ModelFindings findings;
  bool varied = false;
  for (std::int64_t i = 0; i < context.base.rows(); ++i) {
    const std::span<const float> row = context.base.row(i);
    const auto bad = std::ranges::find_if(row, is_bad);
    varied |= std::ranges::any_of(
        row, [&](float logit) { return logit != row.front(); });
    if (bad != row.end())
      findings.add(bad_row(i, bad - row.begin(), double{*bad}));
    else if (std::ranges::none_of(row,
                                  [](float x) { return std::isfinite(x); }))
      findings.add(bad_row(i, -1, -INFINITY));
  }
  result.coverage = fmt::format("{} rows", context.base.rows());
  if (!findings.empty()) {
    result.verdict = Verdict::kViolation;
  } else if (varied) {
    result.verdict = Verdict::kPass;
  } else {
    result.verdict = Verdict::kInconclusive;
    result.note = "all logits of each token are equal: this model says nothing";
  }
  findings.move_to(result);
  return ok_status();
}

}  // namespace

const ModelCheckInfo kModelFinite = {
    .id = "model-finite",
    .summary = "logits are written, and are numbers",
    .cost = "no further call",
    .explanation =
        R"(model-finite: logits are written, and are numbers

What it sees
  NaN and +inf among the logits of one pass over the text, and rows of -inf
  alone. A single -inf is legal: it bans an entry of the vocabulary. Logits that
  are not written at all are an error of the model, in every check.

What it looks like
  Generation that stops or repeats one token; a loss of NaN.

Where to look
  Rows without an allowed key, scores beyond the range of fp16, stale cache
  cells that are multiplied by a weight of 0.
)",
    .not_applicable = [](const Model&) -> std::string { return {}; },
    .run = run_finite,
};

}  // namespace attnguard
