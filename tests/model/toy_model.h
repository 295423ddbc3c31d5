// A transformer of one layer, with a cache and with one thing wrong on demand.
#ifndef ATTNGUARD_TESTS_MODEL_TOY_MODEL_H_
#define ATTNGUARD_TESTS_MODEL_TOY_MODEL_H_

#include "guard/model/model.h"

namespace attnguard {

enum class ToyFault {
  kNone,
  kSoftmaxOverQueries,   // Columns of the weights sum to 1, not rows.
  kSeesNextToken,        // The mask is off by one.
  kCopiesNextToken,      // As if trained to use a leak: predicts what it sees.
  kDropsCacheToken,      // A later piece does not see the last cached token.
  kPositionsStartOver,   // Each piece counts positions from 0.
  kCountsTheStep,        // A logit grows with the number of tokens of a step.
  kSeesOtherSequence,    // Another sequence's first key is visible.
  kMixesBatch,           // Logits take a little of the batch's first row.
  kReadsPastItsLength,   // The slot behind the last token is visible.
  kRandom,               // Noise of 1e-3 on each logit.
  kNanBehindTheTenth,    // Logits from token 10 on are NaN.
  kSkipsALogit,          // One logit is never written.
  kIgnoresContext,       // Attention is left out: logits see their own token.
  kConstant,             // All logits are 1.
  kThrowsInSecondBatch,  // Batches of two sequences throw.
};

inline constexpr std::int32_t kToyVocab = 32;

// Incremental, three sequences of at most 256 tokens. Its rows are computed one
// by one in the same order however the text is cut.
Model toy_model(ToyFault fault);

}  // namespace attnguard

#endif  // ATTNGUARD_TESTS_MODEL_TOY_MODEL_H_
