// Which token lies in which cell of llama.cpp's KV cache: kept from what the
// host decodes and from the indices that each graph writes to, never from the
// mask that the engine builds. Rows of a ubatch and columns of the cache are no
// positions; this says which they are.
#ifndef ATTNGUARD_ADAPTERS_LLAMA_CPP_LIVE_CELL_LEDGER_H_
#define ATTNGUARD_ADAPTERS_LLAMA_CPP_LIVE_CELL_LEDGER_H_

#include <bitset>
#include <cstdint>
#include <vector>

namespace attnguard::llama_cpp {

inline constexpr std::int32_t kMostSequences = 256;  // LLAMA_MAX_SEQ
using SequenceSet = std::bitset<kMostSequences>;

// Whether a sequence is one of those that a SequenceSet holds.
inline bool is_tracked(std::int32_t sequence) {
  return sequence >= 0 && sequence < kMostSequences;
}

// A token as the host gives it to llama_decode.
struct Token {
  std::int32_t position = -1;
  std::int32_t sequence =
      -1;                 // The first of its sequences: whose keys it sees.
  SequenceSet sequences;  // All of them: who sees it.
};

// A key of a sequence.
struct Cell {
  std::int64_t index = 0;  // stream * cells_per_stream + cell
  std::int32_t position = -1;
};

// The cells of one cache. A model with windows has two, with cells of their
// own. Positions past an end are written as in llama_memory_seq_rm: p0 < 0 is
// the start, p1 < 0 the end, and p1 itself is not among them.
class CellLedger {
 public:
  // Forgets everything where the sizes differ from the present ones.
  void resize(std::int64_t cells_per_stream, std::int64_t streams);
  std::int64_t cells_per_stream() const { return cells_per_stream_; }
  std::int64_t streams() const { return streams_; }
  bool contains(std::int64_t cell) const {
    return cell >= 0 && cell < static_cast<std::int64_t>(cells_.size());
  }

  // The token that was in the cell is gone. The cell must be contained.
  void write(std::int64_t cell, const Token& token);

  void clear();
  void remove(std::int32_t sequence, std::int32_t p0, std::int32_t p1);
  void copy(std::int32_t from, std::int32_t to, std::int32_t p0,
            std::int32_t p1);
  void keep(std::int32_t sequence);
  void shift(std::int32_t sequence, std::int32_t p0, std::int32_t p1,
             std::int32_t by);

  // The stream that holds a sequence: its own, or the only one.
  std::int64_t stream_of(std::int32_t sequence) const {
    return streams_ > 1 ? sequence : 0;
  }

  // The sequence's cells among the first `limit` of its stream, by position.
  // `out` is overwritten.
  void cells_of(std::int32_t sequence, std::int64_t limit,
                std::vector<Cell>& out) const;

  bool holds(std::int64_t cell, std::int32_t sequence) const {
    const Slot& slot = cells_[static_cast<std::size_t>(cell)];
    return slot.position >= 0 &&
           slot.sequences.test(static_cast<std::size_t>(sequence));
  }
  std::int32_t position(std::int64_t cell) const {
    return cells_[static_cast<std::size_t>(cell)].position;
  }

  // Changes whenever what lies in the cell may change.
  std::uint32_t generation(std::int64_t cell) const {
    return cells_[static_cast<std::size_t>(cell)].generation;
  }

 private:
  struct Slot {
    std::int32_t position = -1;  // -1: empty
    std::uint32_t generation = 0;
    SequenceSet sequences;
  };

  // Calls `change` with each cell of the sequence between the positions.
  template <typename Change>
  void for_each(std::int32_t sequence, std::int32_t p0, std::int32_t p1,
                Change change);
  void copy_stream(std::int32_t from, std::int32_t to);

  std::int64_t cells_per_stream_ = 0;
  std::int64_t streams_ = 0;
  std::vector<Slot> cells_;
};

}  // namespace attnguard::llama_cpp

#endif  // ATTNGUARD_ADAPTERS_LLAMA_CPP_LIVE_CELL_LEDGER_H_
