// model-prefix: a prefix alone gives what it gives inside of a longer text.
#include <fmt/format.h>

#include <set>

#include "guard/model/model_check_table.h"

namespace attnguard {
namespace {

Status run_prefix(ModelCheckContext& context, CheckResult& result) {
  BoundedComparison comparison(context, "prefix");
  const std::int64_t length = context.length();
  for (const std::int64_t size : std::set<std::int64_t>{
           1, 2, length / 4, length / 2, length * 3 / 4, length - 1}) {
    if (size < 1 || size >= length) continue;
    const Result<Logits> alone = context.runner.one_pass(
        std::span(context.tokens).first(static_cast<std::size_t>(size)));
    if (!alone.ok()) return alone.status();
    comparison.rows(alone.value(), context.base,
                    fmt::format("in a text of {} tokens", size));
  }
  return comparison.conclude(result);
}

}  // namespace

const ModelCheckInfo kModelPrefix = {
    .id = "model-prefix",
    .summary = "a prefix alone gives the logits it has in a longer text",
    .cost = "up to 6 runs of prefixes",
    .explanation =
        R"(model-prefix: a prefix alone gives the logits it has in a longer text

What it sees
  The first 1, 2, a quarter, a half, three quarters and all but one of the tokens
  are run alone and compared with the same rows of the whole text. The shapes
  differ, so kernels may round differently: the bound is
  rounding * max(roundoff of the model, 2^-20) * largest logit of the row, the
  factor being an option. The check is inconclusive if changing one token moves
  later logits by less than twice that: nothing could be seen then.

What it looks like
  Logits that depend on how long the text is: padding that is seen, positions
  counted from the end, statistics over the whole sequence.

Where to look
  Padding masks, position ids, masks aligned to the wrong corner, tail tiles.
)",
    .not_applicable = [](const Model&) -> std::string { return {}; },
    .run = run_prefix,
};

}  // namespace attnguard
