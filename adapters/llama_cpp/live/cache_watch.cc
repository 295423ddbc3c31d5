#include "adapters/llama_cpp/live/cache_watch.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace attnguard::llama_cpp {
namespace {

bool same(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

bool row_is_right(const CacheWrite& write, std::int64_t row) {
  const Dtype from = *write.from.dtype(), to = *write.to.dtype();
  const std::int64_t cell = write.index[static_cast<std::size_t>(row)];
  for (std::int64_t c = 0; c < write.from.shape[3]; ++c) {
    double source = 0, stored = 0;
    decode(from, write.from.at(0, 0, row, c), 1, 1, &source);
    decode(to, write.to.at(0, 0, cell, c), 1, 1, &stored);
    if (!same(quantize(to, source), stored)) return false;
  }
  return true;
}

class Hash {
 public:
  void add(const std::byte* data, std::int64_t size) {
    for (; size >= 8; size -= 8, data += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, data, 8);
      add(word);
    }
    if (size == 0) return;
    std::uint64_t word = 0;
    std::memcpy(&word, data, static_cast<std::size_t>(size));
    add(word ^ static_cast<std::uint64_t>(size) << 56);
  }
  std::uint64_t value() const { return value_; }

 private:
  void add(std::uint64_t word) {
    value_ = (value_ ^ word) * 0x9e3779b97f4a7c15;
    value_ ^= value_ >> 29;
  }
  std::uint64_t value_ = 0x243f6a8885a308d3;
};

// A row whose channels lie side by side, or one after another across a
// transposed tensor. A row of blocks is as long as the next head is far, or
// nothing of it is added.
void add_rows(const Place& place, std::int64_t stream, std::int64_t row,
              Hash& hash) {
  const std::optional<Dtype> dtype = place.dtype();
  for (std::int64_t head = 0; head < place.shape[1]; ++head) {
    if (!dtype) {
      const std::int64_t size = std::min(place.bytes[1], place.bytes[2]);
      hash.add(place.at(stream, head, row), size);
      continue;
    }
    const auto size = static_cast<std::int64_t>(dtype_size(*dtype));
    if (place.bytes[3] == size) {
      hash.add(place.at(stream, head, row), size * place.shape[3]);
      continue;
    }
    for (std::int64_t c = 0; c < place.shape[3]; ++c)
      hash.add(place.at(stream, head, row, c), size);
  }
}

}  // namespace

bool can_compare(const CacheWrite& write) {
  return write.from.dtype() && write.to.dtype();
}

std::int64_t first_wrong_row(const CacheWrite& write) {
  if (!can_compare(write)) return -1;
  for (std::int64_t row = 0; row < write.from.shape[2]; ++row)
    if (!row_is_right(write, row)) return row;
  return -1;
}

bool CellPrints::changed(const AttentionNode& node, const CellLedger& ledger,
                         std::int64_t cell) {
  const auto cells =
      static_cast<std::size_t>(ledger.cells_per_stream() * ledger.streams());
  if (prints_.size() != cells) prints_.assign(cells, {});
  const std::int64_t stream =
      cell / ledger.cells_per_stream() - node.first_stream;
  const std::int64_t row = cell % ledger.cells_per_stream();
  Hash hash;
  add_rows(node.key, stream, row, hash);
  add_rows(node.value, stream, row, hash);
  Print& print = prints_[static_cast<std::size_t>(cell)];
  const std::uint32_t generation = ledger.generation(cell);
  const bool differs = print.known && print.generation == generation &&
                       print.hash != hash.value();
  print = {hash.value(), generation, true};
  return differs;
}

}  // namespace attnguard::llama_cpp
