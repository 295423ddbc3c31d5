// A whole model as the checks see it: token ids in, logits out, and a cache
// that remembers what each sequence has read so far.
//
// Logits are [num_tokens, vocab_size] fp32, row-major: row i of a step says
// what comes after the token i of that step. Positions count from 0 in each
// sequence.
#ifndef ATTNGUARD_GUARD_MODEL_MODEL_H_
#define ATTNGUARD_GUARD_MODEL_MODEL_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "guard/base/status.h"

namespace attnguard {

// New tokens of one sequence, and where their logits go. Both spans belong to
// the caller and live until decode() returns.
struct ModelStep {
  std::int64_t sequence = 0;  // 0 ... max_sequences - 1
  std::int64_t position = 0;  // Of tokens[0]: how many tokens of the sequence
                              // the cache already holds.
  std::span<const std::int32_t> tokens;  // At least one; 0 ... vocab_size - 1.
  std::span<float> logits;               // [tokens.size(), vocab_size]
};

// Callbacks and what they can do. The checks never use more than is declared:
// what a model cannot do is reported as not applicable.
struct Model {
  std::string name;         // "tiny.gguf"
  std::string description;  // One line: architecture, runtime, options.
  std::int32_t vocab_size = 0;
  std::int64_t context_length = 0;  // Most tokens of one sequence; 0: no limit.
  std::int64_t max_sequences = 1;   // Sequences in the cache, and in one batch.

  // false: no cache. Every step then starts at position 0 and holds the whole
  // sequence.
  bool incremental = true;

  // Most tokens that decode reads of one sequence at a time; longer steps are
  // cut into such pieces, so that there is no other way to compare with.
  std::int64_t most_tokens_per_call = 0;  // 0: any

  // The same calls give the same bits. If not, no comparison is bitwise: each
  // allows for the noise that repeats show.
  bool deterministic = true;

  // The unit roundoff of the least precise numbers that the model passes on
  // between its layers or keeps in its cache: 2^-24 for fp32, 2^-11 for fp16,
  // 2^-8 for bf16 or activations in 8 bits. It sets how far logits may differ
  // where two correct ways to compute them (prefill and decode) round unlike.
  double roundoff = 0x1p-24;

  // Forgets one sequence; other sequences stay as they are. Called before a
  // sequence's first step, and whenever it starts over. May be null if the
  // model is not incremental.
  std::function<Status(std::int64_t sequence)> clear;

  // Reads the tokens of all steps as one batch, appends them to the caches and
  // writes their logits, every element. Within one call each sequence occurs
  // at most once. May throw: that is an engine error.
  std::function<Status(std::span<const ModelStep> steps)> decode;
};

// A model without a cache, from one function: all tokens of a sequence in,
// logits [tokens.size(), vocab_size] out.
Model model_from_callback(
    std::string name, std::int32_t vocab_size,
    std::function<Status(std::span<const std::int32_t> tokens,
                         std::span<float> logits)>
        callback);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_MODEL_MODEL_H_
