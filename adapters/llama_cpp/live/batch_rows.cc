#include "adapters/llama_cpp/live/batch_rows.h"

#include <algorithm>

namespace attnguard::llama_cpp {

bool BatchRows::begin(std::int32_t num_tokens, const std::int32_t* positions,
                      const std::int32_t* num_sequences,
                      const std::int32_t* const* sequences) {
  batch_.clear();
  used_.clear();
  rows_.clear();
  taken_.clear();
  first_unused_ = 0;
  for (std::int32_t i = 0; i < num_tokens; ++i) {
    Token token;
    const std::int32_t count =
        sequences == nullptr || num_sequences == nullptr ? 0 : num_sequences[i];
    token.sequence = count > 0 ? sequences[i][0] : 0;
    for (std::int32_t s = 0; s < std::max(count, 1); ++s) {
      const std::int32_t sequence = count > 0 ? sequences[i][s] : 0;
      if (!is_tracked(sequence)) {
        batch_.clear();
        return false;
      }
      token.sequences.set(static_cast<std::size_t>(sequence));
    }
    token.position =
        positions != nullptr ? positions[i] : next_position(token.sequence);
    for (std::int32_t s = 0; s < std::max(count, 1); ++s)
      set_next_position(count > 0 ? sequences[i][s] : 0, token.position + 1);
    batch_.push_back(token);
  }
  used_.assign(batch_.size(), false);
  return true;
}

// The first unused token; with streams, of the stream's sequence.
bool BatchRows::take_next(std::int32_t stream, std::int64_t streams) {
  while (first_unused_ < used_.size() && used_[first_unused_]) ++first_unused_;
  for (std::size_t i = first_unused_; i < batch_.size(); ++i) {
    if (used_[i] || (streams > 1 && batch_[i].sequence != stream)) continue;
    used_[i] = true;
    rows_.push_back(batch_[i]);
    taken_.push_back(batch_[i]);
    return true;
  }
  return false;
}

bool BatchRows::take(std::span<const std::int64_t> cells,
                     std::int64_t cells_per_stream, std::int64_t streams) {
  rows_.clear();
  if (cells_per_stream <= 0) return false;
  for (const std::int64_t cell : cells)
    if (!take_next(static_cast<std::int32_t>(cell / cells_per_stream),
                   streams)) {
      rows_.clear();
      return false;
    }
  return true;
}

void BatchRows::set_next_position(std::int32_t sequence,
                                  std::int32_t position) {
  if (is_tracked(sequence))
    next_[static_cast<std::size_t>(sequence)] = position;
}

void BatchRows::rewind() {
  for (const Token& token : batch_)
    for (std::size_t s = 0; s < next_.size(); ++s)
      if (token.sequences.test(s))
        next_[s] = std::min(next_[s], token.position);
}

void BatchRows::reset() {
  batch_.clear();
  used_.clear();
  rows_.clear();
  taken_.clear();
  next_.fill(0);
}

}  // namespace attnguard::llama_cpp
