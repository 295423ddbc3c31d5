// Whether the KV cache holds what was put there: a check of the write itself,
// and a fingerprint of each cell that is compared when the cell is met again.
// A stale page is an input to the attention kernel, so that no look at one call
// can see it.
#ifndef ATTNGUARD_ADAPTERS_LLAMA_CPP_LIVE_CACHE_WATCH_H_
#define ATTNGUARD_ADAPTERS_LLAMA_CPP_LIVE_CACHE_WATCH_H_

#include <cstdint>
#include <vector>

#include "adapters/llama_cpp/live/attention_node.h"
#include "adapters/llama_cpp/live/cell_ledger.h"

namespace attnguard::llama_cpp {

// Row of `write.from` whose row in the cache is not its value, rounded to the
// cache's type; -1: none. Types in blocks are not compared: -1.
std::int64_t first_wrong_row(const CacheWrite& write);

// True where first_wrong_row can say something.
bool can_compare(const CacheWrite& write);

// Fingerprints of the cells of one layer. A cell's own is taken when it is met,
// and holds until the ledger says that the cell was written.
class CellPrints {
 public:
  // Compares or takes the print of a cell. True: it is not what it was.
  // `cell` as in Cell::index; it lies among those of `node`.
  bool changed(const AttentionNode& node, const CellLedger& ledger,
               std::int64_t cell);

 private:
  struct Print {
    std::uint64_t hash = 0;
    std::uint32_t generation = 0;
    bool known = false;
  };
  std::vector<Print> prints_;
};

}  // namespace attnguard::llama_cpp

#endif  // ATTNGUARD_ADAPTERS_LLAMA_CPP_LIVE_CACHE_WATCH_H_
