// model-batch: other sequences do not matter.
#include <fmt/format.h>

#include "guard/model/exact.h"
#include "guard/model/model_check_table.h"

namespace attnguard {
namespace {

// The logits of the text in sequence `own` and of its neighbour.
struct Pair {
  Logits text, mate;
};

// Both from nothing in one batch.
Result<Pair> in_one_batch(ModelCheckContext& context, const Tokens& mate,
                          bool text_first) {
  Status status = context.runner.clear_all();
  if (!status.ok()) return status;
  const Append text{text_first ? 0 : 1, context.tokens};
  const Append other{text_first ? 1 : 0, mate};
  const Append batch[] = {text_first ? text : other, text_first ? other : text};
  Result<std::vector<Logits>> logits = context.runner.decode(batch);
  if (!logits.ok()) return logits.status();
  std::vector<Logits>& parts = logits.value();
  return Pair{parts[text_first ? 0 : 1], parts[text_first ? 1 : 0]};
}

void append_rows(Logits& to, const Logits& from) {
  to.values.insert(to.values.end(), from.values.begin(), from.values.end());
}

// The neighbour lies in the cache before the text comes; from the middle on
// both go on token by token, in batches of two. Alone, the text comes in these
// pieces: a leak or a miss that has nothing to do with neighbours is the same.
Result<Pair> in_one_cache(ModelCheckContext& context, const Tokens& mate) {
  Status status = context.runner.clear_all();
  if (!status.ok()) return status;
  const std::size_t half = context.tokens.size() / 2;
  const std::span<const std::int32_t> text(context.tokens), other(mate);
  const Append mate_first[] = {{1, other.first(half)}};
  Result<std::vector<Logits>> logits = context.runner.decode(mate_first);
  if (!logits.ok()) return logits.status();
  Pair out{{context.model.vocab_size, {}}, std::move(logits.value()[0])};
  const Append text_next[] = {{0, text.first(half)}};
  logits = context.runner.decode(text_next);
  if (!logits.ok()) return logits.status();
  append_rows(out.text, logits.value()[0]);
  for (std::size_t i = half; i < text.size(); ++i) {
    const Append both[] = {{0, text.subspan(i, 1)}, {1, other.subspan(i, 1)}};
    logits = context.runner.decode(both);
    if (!logits.ok()) return logits.status();
    append_rows(out.text, logits.value()[0]);
    append_rows(out.mate, logits.value()[1]);
  }
  return out;
}

class Neighbours {
 public:
  explicit Neighbours(ModelCheckContext& context)
      : comparison_(context, ""), context_(context) {
    comparison_.reference = "of the text alone";
  }

  // The same calls with two neighbours: the text owes the same bits with both,
  // and what it gives alone within rounding.
  template <typename Run>
  Status compare(const char* probe, const char* words, const Logits& alone,
                 Run&& run) {
    const Result<Pair> first = run(context_.other_text(context_.length(), 11));
    if (!first.ok()) return first.status();
    const Result<Pair> second = run(context_.other_text(context_.length(), 12));
    if (!second.ok()) return second.status();
    const Pair &a = first.value(), &b = second.value();
    if (!any_moved(context_, a.mate, b.mate, 0, a.mate.rows())) ++unmoved_;
    find_moved(context_, a.text, b.text, 0, context_.length(),
               {.kind = FindingKind::kLeak, .probe = probe, .batch = 0},
               fmt::format("when the other sequence {} changes", words),
               comparison_.findings);
    comparison_.probe = probe;
    comparison_.rows(a.text, alone,
                     fmt::format("with another sequence {}", words));
    return ok_status();
  }

  // A shorter neighbour.
  Status compare_uneven() {
    const Result<Pair> pair = in_one_batch(
        context_, context_.other_text(context_.length() / 2, 13), true);
    if (!pair.ok()) return pair.status();
    comparison_.probe = "uneven-batch";
    comparison_.rows(pair.value().text, context_.base,
                     "with a shorter sequence in the batch");
    return ok_status();
  }

  Status conclude(CheckResult& result) {
    Status status = comparison_.conclude(result);
    if (status.ok() && result.verdict == Verdict::kPass && unmoved_ > 0) {
      result.verdict = Verdict::kInconclusive;
      result.note = "another neighbour has the same logits as the first";
    }
    return status;
  }

 private:
  BoundedComparison comparison_;
  ModelCheckContext& context_;
  std::int64_t unmoved_ = 0;
};

Status run(ModelCheckContext& context, CheckResult& result) {
  Neighbours neighbours(context);
  Status status = neighbours.compare(
      "one-batch", "behind it in the batch", context.base,
      [&](const Tokens& mate) { return in_one_batch(context, mate, true); });
  if (status.ok())
    status = neighbours.compare(
        "one-batch-second", "before it in the batch", context.base,
        [&](const Tokens& mate) { return in_one_batch(context, mate, false); });
  if (status.ok()) status = neighbours.compare_uneven();
  if (status.ok() && context.model.incremental) {
    const std::int64_t sizes[] = {context.length() / 2, 1};
    const Result<Logits> alone =
        context.runner.in_pieces(context.tokens, sizes);
    if (!alone.ok()) return alone.status();
    status = neighbours.compare(
        "one-cache", "in the cache", alone.value(),
        [&](const Tokens& mate) { return in_one_cache(context, mate); });
  }
  return status.ok() ? neighbours.conclude(result) : status;
}

}  // namespace

const ModelCheckInfo kModelBatch = {
    .id = "model-batch",
    .summary = "other sequences, in the batch or the cache, do not matter",
    .cost = "5 batches, and 2 runs of half of the text token by token",
    .explanation =
        R"(model-batch: other sequences, in the batch or the cache, do not matter

What it sees
  The text is run beside another sequence: as first and as second of a batch,
  beside a shorter one, and with the other in the cache, both going on token by
  token. With another neighbour of the same length its logits must stay the same
  bit for bit, and those of the neighbour must change, which is the positive
  control. They must also be those of the text alone, read in the same pieces, within
  the bound for rounding (`explain model-prefix`).

What it looks like
  Answers that depend on who else is served; one user's text in another's answer.

Where to look
  Sequence masks of a shared cache, block tables, cumulative lengths, softmax or
  normalisation over the batch axis, padding of uneven batches.
)",
    .not_applicable = [](const Model& model) -> std::string {
      return model.max_sequences >= 2 ? "" : "the model takes one sequence";
    },
    .run = run,
};

}  // namespace attnguard
