#include "guard/runtime/hull.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "guard/base/rng.h"

namespace attnguard::runtime_internal {

void Hull::clear(std::int64_t first, std::int64_t channels) {
  begin = end = first;
  finite = true;
  const double infinity = std::numeric_limits<double>::infinity();
  low.assign(static_cast<std::size_t>(channels), infinity);
  high.assign(static_cast<std::size_t>(channels), -infinity);
}

void Hull::extend(const ConstTensorView& value, std::int64_t batch,
                  std::int64_t kv_head, std::int64_t to,
                  std::vector<double>& buffer) {
  const std::size_t channels = low.size();
  buffer.resize(channels);
  double* const row = buffer.data();
  double* const lowest = low.data();
  double* const highest = high.data();
  for (; end < to; ++end) {
    value.load_row(batch, kv_head, end, 0, static_cast<std::int64_t>(channels),
                   row);
    double sum = 0;
    for (std::size_t c = 0; c < channels; ++c) {
      lowest[c] = std::min(lowest[c], row[c]);
      highest[c] = std::max(highest[c], row[c]);
      sum += row[c] - row[c];  // NaN when one is NaN or infinite.
    }
    finite = finite && sum == 0;
  }
}

SequenceClock::Slot& SequenceClock::slot(std::uint64_t sequence) {
  return slots_[mix_bits(sequence) % kSlots];
}

const SequenceClock::Slot& SequenceClock::slot(std::uint64_t sequence) const {
  return slots_[mix_bits(sequence) % kSlots];
}

void SequenceClock::append(std::uint64_t sequence, std::int64_t first,
                           std::int64_t count) {
  Slot& at = slot(sequence);
  // Tokens written over others change what was read. Where the length is that
  // of another sequence in this slot, it does not say whether they were.
  if (first != at.length.load(std::memory_order_relaxed))
    at.epoch.fetch_add(1, std::memory_order_release);
  at.length.store(first + count, std::memory_order_relaxed);
}

void SequenceClock::truncate(std::uint64_t sequence, std::int64_t length) {
  Slot& at = slot(sequence);
  at.epoch.fetch_add(1, std::memory_order_release);
  at.length.store(length, std::memory_order_relaxed);
}

void SequenceClock::fork(std::uint64_t parent, std::uint64_t child) {
  Slot& to = slot(child);
  to.epoch.fetch_add(1, std::memory_order_release);
  to.length.store(slot(parent).length.load(std::memory_order_relaxed),
                  std::memory_order_relaxed);
}

void SequenceClock::evict(std::uint64_t sequence) { truncate(sequence, 0); }

HullTable::Entry& HullTable::place(std::uint32_t layer, std::uint64_t sequence,
                                   std::int64_t kv_head) {
  if (entries_.empty()) entries_.resize(kSets * kWays);
  const std::uint64_t hash = derive_seed(derive_seed(sequence, layer),
                                         static_cast<std::uint64_t>(kv_head));
  Entry* const set = entries_.data() + hash % kSets * kWays;
  Entry* oldest = set;
  for (Entry* entry = set; entry < set + kWays; ++entry) {
    if (entry->used && entry->layer == layer && entry->sequence == sequence &&
        entry->kv_head == kv_head)
      return *entry;
    if (entry->last_use < oldest->last_use) oldest = entry;
  }
  oldest->used = false;
  oldest->layer = layer;
  oldest->sequence = sequence;
  oldest->kv_head = kv_head;
  return *oldest;
}

Hull& HullTable::find(std::uint32_t layer, std::uint64_t sequence,
                      std::int64_t kv_head, std::uint32_t epoch,
                      std::int64_t channels) {
  Entry& entry = place(layer, sequence, kv_head);
  if (!entry.used || entry.epoch != epoch ||
      entry.hull.low.size() != static_cast<std::size_t>(channels))
    entry.hull.clear(0, channels);
  entry.used = true;
  entry.epoch = epoch;
  entry.last_use = ++uses_;
  return entry.hull;
}

void HullTable::fork(std::uint64_t parent, std::uint32_t parent_epoch,
                     std::uint64_t child, std::uint32_t child_epoch) {
  for (std::size_t n = 0; n < entries_.size(); ++n) {
    const Entry& from = entries_[n];
    if (!from.used || from.sequence != parent || from.epoch != parent_epoch)
      continue;
    const std::uint32_t layer = from.layer;
    const std::int64_t kv_head = from.kv_head;
    // The child's place may be the parent's own: then there is no copy.
    Entry& to = place(layer, child, kv_head);
    if (&to == &from) continue;
    to.hull = from.hull;
    to.epoch = child_epoch;
    to.used = true;
    to.last_use = ++uses_;
  }
}

}  // namespace attnguard::runtime_internal
