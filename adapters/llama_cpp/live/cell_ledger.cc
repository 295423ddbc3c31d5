#include "adapters/llama_cpp/live/cell_ledger.h"

#include <algorithm>
#include <limits>

namespace attnguard::llama_cpp {
namespace {

std::size_t bit(std::int32_t sequence) {
  return static_cast<std::size_t>(sequence);
}

}  // namespace

void CellLedger::resize(std::int64_t cells_per_stream, std::int64_t streams) {
  if (cells_per_stream == cells_per_stream_ && streams == streams_) return;
  cells_per_stream_ = cells_per_stream;
  streams_ = streams;
  cells_.assign(static_cast<std::size_t>(cells_per_stream * streams), {});
}

void CellLedger::write(std::int64_t cell, const Token& token) {
  Slot& slot = cells_[static_cast<std::size_t>(cell)];
  slot.position = token.position;
  slot.sequences = token.sequences;
  ++slot.generation;
}

void CellLedger::clear() {
  for (Slot& slot : cells_) {
    slot.position = -1;
    slot.sequences.reset();
    ++slot.generation;
  }
}

template <typename Change>
void CellLedger::for_each(std::int32_t sequence, std::int32_t p0,
                          std::int32_t p1, Change change) {
  if (p0 < 0) p0 = 0;
  if (p1 < 0) p1 = std::numeric_limits<std::int32_t>::max();
  for (Slot& slot : cells_)
    if (slot.position >= p0 && slot.position < p1 &&
        slot.sequences.test(bit(sequence)))
      change(slot);
}

void CellLedger::remove(std::int32_t sequence, std::int32_t p0,
                        std::int32_t p1) {
  if (sequence < 0) {  // Every sequence.
    for (std::int32_t s = 0; s < kMostSequences; ++s) remove(s, p0, p1);
    return;
  }
  if (!is_tracked(sequence)) return;
  for_each(sequence, p0, p1, [&](Slot& slot) {
    slot.sequences.reset(bit(sequence));
    if (slot.sequences.none()) slot.position = -1;
  });
}

// Data moves between streams, and the whole stream at once.
void CellLedger::copy_stream(std::int32_t from, std::int32_t to) {
  if (stream_of(from) >= streams_ || stream_of(to) >= streams_) return;
  const auto first = stream_of(from) * cells_per_stream_;
  const auto target = stream_of(to) * cells_per_stream_;
  for (std::int64_t i = 0; i < cells_per_stream_; ++i) {
    const Slot& source = cells_[static_cast<std::size_t>(first + i)];
    Slot& slot = cells_[static_cast<std::size_t>(target + i)];
    const bool has = source.position >= 0 && source.sequences.test(bit(from));
    slot.position = has ? source.position : -1;
    slot.sequences.reset();
    if (has) slot.sequences.set(bit(to));
    ++slot.generation;
  }
}

void CellLedger::copy(std::int32_t from, std::int32_t to, std::int32_t p0,
                      std::int32_t p1) {
  if (!is_tracked(from) || !is_tracked(to) || from == to) return;
  if (streams_ > 1) return copy_stream(from, to);
  for_each(from, p0, p1, [&](Slot& slot) { slot.sequences.set(bit(to)); });
}

void CellLedger::keep(std::int32_t sequence) {
  if (!is_tracked(sequence)) return;
  // With streams, only the sequence's own is looked at, as in llama.cpp.
  for (std::int64_t i = 0; i < cells_per_stream_; ++i) {
    const std::int64_t cell = stream_of(sequence) * cells_per_stream_ + i;
    if (!contains(cell)) return;
    Slot& slot = cells_[static_cast<std::size_t>(cell)];
    const bool has = slot.position >= 0 && slot.sequences.test(bit(sequence));
    slot.sequences.reset();
    if (has)
      slot.sequences.set(bit(sequence));
    else
      slot.position = -1;
  }
}

void CellLedger::shift(std::int32_t sequence, std::int32_t p0, std::int32_t p1,
                       std::int32_t by) {
  if (!is_tracked(sequence) || by == 0) return;
  for_each(sequence, p0, p1, [&](Slot& slot) {
    slot.position += by;  // Below 0 the cell is empty.
    if (slot.position < 0) slot.sequences.reset();
    ++slot.generation;  // Its key is rotated again.
  });
}

void CellLedger::cells_of(std::int32_t sequence, std::int64_t limit,
                          std::vector<Cell>& out) const {
  out.clear();
  const std::int64_t stream = stream_of(sequence);
  if (!is_tracked(sequence) || stream >= streams_) return;
  const std::int64_t first = stream * cells_per_stream_;
  for (std::int64_t i = 0; i < std::min(limit, cells_per_stream_); ++i)
    if (holds(first + i, sequence))
      out.push_back({first + i, position(first + i)});
  const auto earlier = [](const Cell& a, const Cell& b) {
    return a.position < b.position;
  };
  // Most caches are filled in order.
  if (!std::is_sorted(out.begin(), out.end(), earlier))
    std::sort(out.begin(), out.end(), earlier);
}

}  // namespace attnguard::llama_cpp
