// model-incremental: prefill, pieces and token by token agree.
#include "guard/model/model_check_table.h"

namespace attnguard {
namespace {

struct IncrementalWay {
  const char* probe;
  const char* words;
  std::vector<std::int64_t> sizes;  // The last one repeats.
};

std::vector<IncrementalWay> ways_of(std::int64_t length) {
  return {{"token-by-token", "read token by token", {1}},
          {"in-pieces",
           "read in pieces of 1, 2, 3, 5, 8 ...",
           {1, 2, 3, 5, 8, 13, 21, 34, 55, 89}},
          {"prefill-then-tokens",
           "read token by token behind a prefill of half",
           {length / 2, 1}},
          {"tail-of-two",
           "read in two pieces, the second of two tokens",
           {length - 2, 2}}};
}

Status run_incremental(ModelCheckContext& context, CheckResult& result) {
  BoundedComparison comparison(context, "");
  for (const IncrementalWay& way : ways_of(context.length())) {
    const Result<Logits> pieces =
        context.runner.in_pieces(context.tokens, way.sizes);
    if (!pieces.ok()) return pieces.status();
    comparison.probe = way.probe;
    comparison.rows(pieces.value(), context.base, way.words);
  }
  return comparison.conclude(result);
}

}  // namespace

const ModelCheckInfo kModelIncremental = {
    .id = "model-incremental",
    .summary = "prefill, pieces and token by token give the same logits",
    .cost = "4 runs of the text in pieces",
    .explanation =
        R"(model-incremental: prefill, pieces and token by token give the same logits

What it sees
  The text is read in one pass, token by token, in pieces of growing size, with a
  prefill of half of it, and with a last piece of two tokens. All logits must be
  those of one pass, within the bound for rounding that `explain model-prefix`
  describes.

What it looks like
  A model whose loss is fine and whose generation is not: the first words are
  good, then it forgets or repeats.

Where to look
  Cache slots written or read one off, the key of the new token not seen, masks
  of a piece aligned to the first token, position ids that start over, windows
  that are one longer in prefill than in decode.
)",
    .not_applicable = [](const Model& model) -> std::string {
      if (!model.incremental) return "the model has no cache";
      return model.most_tokens_per_call == 1 ? kOneTokenAtATime : "";
    },
    .run = run_incremental,
};

}  // namespace attnguard
