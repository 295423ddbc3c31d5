// Which token of the host's batch each row of a ubatch is. llama.cpp splits a
// batch in order where the cache is one stream, and takes as many tokens of
// each sequence where every sequence has a stream of its own.
#ifndef ATTNGUARD_ADAPTERS_LLAMA_CPP_LIVE_BATCH_ROWS_H_
#define ATTNGUARD_ADAPTERS_LLAMA_CPP_LIVE_BATCH_ROWS_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "adapters/llama_cpp/live/cell_ledger.h"

namespace attnguard::llama_cpp {

class BatchRows {
 public:
  // As in LiveHook::begin_batch. False, and nothing is known of the batch,
  // where a sequence is beyond kMostSequences.
  bool begin(std::int32_t num_tokens, const std::int32_t* positions,
             const std::int32_t* num_sequences,
             const std::int32_t* const* sequences);

  // The next ubatch: row i is written to cells[i] of a cache. False where the
  // batch has no such tokens left: it was another batch.
  bool take(std::span<const std::int64_t> cells, std::int64_t cells_per_stream,
            std::int64_t streams);

  // The rows of the last take; empty after a failed one.
  std::span<const Token> rows() const { return rows_; }

  // Tokens of the batch that were taken so far.
  std::span<const Token> taken() const { return taken_; }

  // Where the sequence goes on when the host gives no positions.
  void set_next_position(std::int32_t sequence, std::int32_t position);
  std::int32_t next_position(std::int32_t sequence) const {
    return next_[static_cast<std::size_t>(sequence)];
  }
  // The batch failed: its sequences go on where it would have begun, whether or
  // not its tokens were taken.
  void rewind();
  void reset();

 private:
  bool take_next(std::int32_t stream, std::int64_t streams);

  std::vector<Token> batch_;
  std::vector<bool> used_;
  std::vector<Token> rows_, taken_;
  std::size_t first_unused_ = 0;
  std::array<std::int32_t, kMostSequences> next_ = {};
};

}  // namespace attnguard::llama_cpp

#endif  // ATTNGUARD_ADAPTERS_LLAMA_CPP_LIVE_BATCH_ROWS_H_
