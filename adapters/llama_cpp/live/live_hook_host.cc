// What the host says: its batches, and what it did to the cache.
#include <algorithm>

#include "adapters/llama_cpp/live/live_hook_state.h"

namespace attnguard::llama_cpp {

void LiveHook::State::begin_batch(std::int32_t num_tokens,
                                  const std::int32_t* positions,
                                  const std::int32_t* num_sequences,
                                  const std::int32_t* const* sequences) {
  if (!told_) in_step_ = true;
  told_ = true;
  last_layer_ = kNoLayer;
  if (!batch_.begin(num_tokens, positions, num_sequences, sequences))
    lose_step("a batch has more sequences than the hook can follow");
}

void LiveHook::State::batch_failed() {
  for (const Token& token : batch_.taken())
    for (std::int32_t s = 0; s < kMostSequences; ++s)
      if (token.sequences.test(static_cast<std::size_t>(s)))
        removed(s, token.position, token.position + 1);
  batch_.rewind();
}

void LiveHook::State::cleared() {
  for (Cache& cache : caches_) cache.ledger.clear();
  batch_.reset();
  in_step_ = told_;
  for (std::int32_t s = 0; s < kMostSequences; ++s) guard_.evict(id(s));
}

void LiveHook::State::removed(std::int32_t sequence, std::int32_t p0,
                              std::int32_t p1) {
  if (sequence < 0) {
    for (std::int32_t s = 0; s < kMostSequences; ++s) removed(s, p0, p1);
    return;
  }
  if (sequence >= kMostSequences) return;
  for (Cache& cache : caches_) cache.ledger.remove(sequence, p0, p1);
  const std::int32_t from = std::max(p0, 0);
  const bool to_end = p1 < 0 || p1 >= batch_.next_position(sequence);
  if (to_end && from < batch_.next_position(sequence))
    batch_.set_next_position(sequence, from);
  if (to_end && from > 0)
    guard_.truncate(id(sequence), from);
  else
    guard_.evict(id(sequence));
}

void LiveHook::State::copied(std::int32_t from, std::int32_t to,
                             std::int32_t p0, std::int32_t p1) {
  if (!is_tracked(from) || !is_tracked(to)) return;
  for (Cache& cache : caches_) cache.ledger.copy(from, to, p0, p1);
  const std::int32_t end = batch_.next_position(from);
  if (p1 < 0 || p1 >= end)
    batch_.set_next_position(to, end);
  else if (p0 < p1)
    batch_.set_next_position(to, std::max(batch_.next_position(to), p1));
  if (p0 <= 0 && p1 < 0)
    guard_.fork(id(from), id(to));
  else
    guard_.evict(id(to));
}

void LiveHook::State::kept(std::int32_t sequence) {
  for (Cache& cache : caches_) cache.ledger.keep(sequence);
  // With streams llama.cpp looks at the sequence's own, and the others go on.
  const bool streams = !caches_.empty() && caches_[0].ledger.streams() > 1;
  for (std::int32_t s = 0; s < kMostSequences; ++s) {
    if (s == sequence) continue;
    guard_.evict(id(s));
    if (!streams) batch_.set_next_position(s, 0);
  }
}

void LiveHook::State::shifted(std::int32_t sequence, std::int32_t p0,
                              std::int32_t p1, std::int32_t by) {
  if (!is_tracked(sequence)) return;
  for (Cache& cache : caches_) cache.ledger.shift(sequence, p0, p1, by);
  const std::int32_t end = batch_.next_position(sequence);
  if (p0 < end && (p1 < 0 || p1 >= end))  // The last token moved.
    batch_.set_next_position(sequence, std::max(end + by, 0));
  guard_.evict(id(sequence));
}

}  // namespace attnguard::llama_cpp
