// The range of a sequence's values, kept from step to step: a decode step then
// reads the new tokens only.
#ifndef ATTNGUARD_GUARD_RUNTIME_HULL_H_
#define ATTNGUARD_GUARD_RUNTIME_HULL_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "guard/base/tensor_view.h"

namespace attnguard::runtime_internal {

// Smallest and largest value of each channel over tokens [begin, end).
struct Hull {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool finite = true;
  std::vector<double> low, high;  // [head_dim_v]

  void clear(std::int64_t first, std::int64_t channels);

  // Takes in tokens [end, to). `buffer` holds one row.
  void extend(const ConstTensorView& value, std::int64_t batch,
              std::int64_t kv_head, std::int64_t to,
              std::vector<double>& buffer);
};

// What the engine says of its sequences. Any thread writes, any thread reads,
// nobody waits: a sequence's epoch changes when what was read of it before may
// no longer hold. Sequences share slots: an epoch may change for nothing.
class SequenceClock {
 public:
  std::uint32_t epoch(std::uint64_t sequence) const {
    return slot(sequence).epoch.load(std::memory_order_acquire);
  }
  void append(std::uint64_t sequence, std::int64_t first, std::int64_t count);
  void truncate(std::uint64_t sequence, std::int64_t length);
  void fork(std::uint64_t parent, std::uint64_t child);
  void evict(std::uint64_t sequence);

 private:
  struct Slot {
    std::atomic<std::uint32_t> epoch{0};
    std::atomic<std::int64_t> length{0};  // Tokens that were written.
  };
  static constexpr std::size_t kSlots = 4096;

  Slot& slot(std::uint64_t sequence);
  const Slot& slot(std::uint64_t sequence) const;

  std::array<Slot, kSlots> slots_;
};

// Hulls of one thread, by layer, sequence and KV head. Bounded: the one that
// was not used for longest makes room.
class HullTable {
 public:
  // The hull, empty when there is none of this epoch.
  Hull& find(std::uint32_t layer, std::uint64_t sequence, std::int64_t kv_head,
             std::uint32_t epoch, std::int64_t channels);

  // What is known of the parent is known of the child.
  void fork(std::uint64_t parent, std::uint32_t parent_epoch,
            std::uint64_t child, std::uint32_t child_epoch);

 private:
  struct Entry {
    bool used = false;
    std::uint32_t layer = 0;
    std::uint32_t epoch = 0;
    std::uint64_t sequence = 0;
    std::int64_t kv_head = 0;
    std::uint64_t last_use = 0;
    Hull hull;
  };
  static constexpr std::size_t kWays = 4;
  static constexpr std::size_t kSets = 256;

  Entry& place(std::uint32_t layer, std::uint64_t sequence,
               std::int64_t kv_head);

  std::vector<Entry> entries_;  // [kSets * kWays], once one is asked for
  std::uint64_t uses_ = 0;
};

}  // namespace attnguard::runtime_internal

#endif  // ATTNGUARD_GUARD_RUNTIME_HULL_H_
