// model-reuse: what a cleared sequence left behind does not matter.
#include <fmt/format.h>

#include <algorithm>

#include "guard/model/exact.h"
#include "guard/model/model_check_table.h"

namespace attnguard {
namespace {

struct Run {
  Logits before;  // Of the sequence that is cleared.
  Logits text;
};

// Another text fills sequence `sequence`, which is cleared; then comes the
// text, in the same sequence.
Result<Run> after_clear(ModelCheckContext& context, const Tokens& other,
                        std::int64_t sequence) {
  Status status = context.runner.clear_all();
  if (!status.ok()) return status;
  const Append fill[] = {{sequence, other}};
  Result<std::vector<Logits>> logits = context.runner.decode(fill);
  if (!logits.ok()) return logits.status();
  Run out{std::move(logits.value()[0]), {}};
  status = context.runner.clear(sequence);
  if (!status.ok()) return status;
  const Append text[] = {{sequence, context.tokens}};
  logits = context.runner.decode(text);
  if (!logits.ok()) return logits.status();
  out.text = std::move(logits.value()[0]);
  return out;
}

// The text is half read when its neighbour is cleared; the second half may get
// the neighbour's slots.
Result<Run> in_neighbours_slots(ModelCheckContext& context,
                                const Tokens& other) {
  Status status = context.runner.clear_all();
  if (!status.ok()) return status;
  const std::size_t half = context.tokens.size() / 2;
  const std::span<const std::int32_t> text(context.tokens);
  Run out;
  out.text.vocab_size = context.model.vocab_size;
  const Append appends[] = {
      {0, text.first(half)}, {1, other}, {0, text.subspan(half)}};
  for (const Append& append : appends) {
    if (append.sequence == 0 && !out.text.values.empty())
      status = context.runner.clear(1);
    if (!status.ok()) return status;
    Result<std::vector<Logits>> logits = context.runner.decode({&append, 1});
    if (!logits.ok()) return logits.status();
    std::vector<float>& values = logits.value()[0].values;
    if (append.sequence == 1)
      out.before = std::move(logits.value()[0]);
    else
      out.text.values.insert(out.text.values.end(), values.begin(),
                             values.end());
  }
  return out;
}

// Some tokens longer than the text where the context allows, so that something
// lies behind the text's end, too.
Tokens longer_text(const ModelCheckContext& context, std::uint64_t variant) {
  std::int64_t size = context.length() + 8;
  if (context.model.context_length > 0)
    size = std::min(size, context.model.context_length);
  return context.other_text(size, variant);
}

Status run_reuse(ModelCheckContext& context, CheckResult& result) {
  BoundedComparison comparison(context, "");
  comparison.reference = "of the text from nothing";
  bool controlled = true;
  const auto compare = [&](const char* probe, const char* words,
                           std::vector<std::int64_t> sizes,
                           auto&& way) -> Status {
    const Result<Logits> alone =
        context.runner.in_pieces(context.tokens, sizes);
    if (!alone.ok()) return alone.status();
    const Result<Run> first = way(longer_text(context, 21));
    if (!first.ok()) return first.status();
    const Result<Run> second = way(longer_text(context, 22));
    if (!second.ok()) return second.status();
    const Run &a = first.value(), &b = second.value();
    controlled &= any_moved(context, a.before, b.before, 0, a.before.rows());
    find_moved(context, a.text, b.text, 0, context.length(),
               {.kind = FindingKind::kLeak, .probe = probe, .batch = 0},
               fmt::format("with what {} held before it was cleared", words),
               comparison.findings);
    comparison.probe = probe;
    comparison.rows(a.text, alone.value(),
                    fmt::format("after {} was cleared", words));
    return ok_status();
  };
  Status status = compare(
      "same-sequence", "the sequence", {context.length()},
      [&](const Tokens& other) { return after_clear(context, other, 0); });
  if (status.ok() && context.model.max_sequences >= 2)
    status = compare("neighbours-slots", "its neighbour",
                     {context.length() / 2, context.length()},
                     [&](const Tokens& other) {
                       return in_neighbours_slots(context, other);
                     });
  if (status.ok()) status = comparison.conclude(result);
  if (status.ok() && result.verdict == Verdict::kPass && !controlled) {
    result.verdict = Verdict::kInconclusive;
    result.note = "two other texts have the same logits";
  }
  return status;
}

}  // namespace

const ModelCheckInfo kModelReuse = {
    .id = "model-reuse",
    .summary = "what a cleared sequence left in the cache does not matter",
    .cost = "4 runs of two texts",
    .explanation =
        R"(model-reuse: what a cleared sequence left in the cache does not matter

What it sees
  A sequence is filled and cleared, and then reads the text; and a neighbour is
  filled and cleared while the text is half read, so that the rest of the text
  may get its slots. With other contents before, the logits must be the same bit
  for bit, and what was there before must have had other logits, which is the
  positive control. They must also be those of the text from nothing, read in the same
  pieces, within the bound for rounding (`explain model-prefix`).

What it looks like
  The first answer of a server is right, later ones carry pieces of earlier
  conversations.

Where to look
  Lengths that are not reset, slots that are freed but not masked, reads past the
  length, recurrent states that are not zeroed.
)",
    .not_applicable = [](const Model& model) -> std::string {
      return model.incremental ? "" : "the model has no cache";
    },
    .run = run_reuse,
};

}  // namespace attnguard
