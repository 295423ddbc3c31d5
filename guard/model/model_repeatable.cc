// model-repeatable: the same calls give the same bits.
#include <fmt/format.h>

#include "guard/model/exact.h"
#include "guard/model/model_check_table.h"

namespace attnguard {
namespace {

Status run_repeatable(ModelCheckContext& context, CheckResult& result) {
  ModelFindings findings;
  bool reacts = false;
  std::vector<std::vector<std::int64_t>> ways = {{context.length()}};
  if (context.model.incremental) ways.push_back({context.length() / 2, 1});
  for (const std::vector<std::int64_t>& sizes : ways) {
    const Result<Logits> first =
        context.runner.in_pieces(context.tokens, sizes);
    if (!first.ok()) return first.status();
    // In between comes another text: what a call leaves behind does not show
    // when the next one leaves the same.
    const Result<Logits> between = context.runner.in_pieces(
        context.other_text(context.length(), 1), sizes);
    if (!between.ok()) return between.status();
    const Result<Logits> again =
        context.runner.in_pieces(context.tokens, sizes);
    if (!again.ok()) return again.status();
    reacts |=
        any_moved(context, first.value(), between.value(), 0, context.length());
    find_moved(context, first.value(), again.value(), 0, context.length(),
               {.kind = FindingKind::kNotRepeatable,
                .probe = ways.front() == sizes ? "one-pass" : "in-pieces",
                .batch = 0},
               "between two runs of the same calls", findings);
  }
  result.coverage = fmt::format(
      "{} rows, {}", context.length(),
      ways.size() == 1 ? "in one pass" : "in one pass and token by token");
  result.verdict = reacts ? Verdict::kPass : Verdict::kInconclusive;
  if (!reacts) result.note = "another text gives the same logits";
  if (!findings.empty()) result.verdict = Verdict::kViolation;
  findings.move_to(result);
  return ok_status();
}

}  // namespace

const ModelCheckInfo kModelRepeatable = {
    .id = "model-repeatable",
    .summary = "the same calls give the same bits",
    .cost = "3 runs of the text, twice with a cache",
    .explanation =
        R"(model-repeatable: the same calls give the same bits

What it sees
  The text is run twice with another one in between, in one pass and, with a
  cache, token by token. All logits must be the same bit for bit. A model that
  declares itself non-deterministic is not judged: its noise is measured, and
  every other comparison allows for four times as much.

What it looks like
  Answers that change at temperature 0; memory that a call reads before it is
  written; a cache that is not cleared.

Where to look
  Atomics and unordered reductions, buffers shared between calls, threads.
)",
    .not_applicable = [](const Model& model) -> std::string {
      return model.deterministic
                 ? ""
                 : "the model declares itself non-deterministic";
    },
    .run = run_repeatable,
};

}  // namespace attnguard
