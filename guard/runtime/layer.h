// A registered layer, with everything that is known before its first call.
#ifndef ATTNGUARD_GUARD_RUNTIME_LAYER_H_
#define ATTNGUARD_GUARD_RUNTIME_LAYER_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "guard/runtime/guard.h"

namespace attnguard::runtime_internal {

struct Layer {
  std::uint32_t index = 0;
  std::uint32_t group_index = 0;  // GuardCounters::kMostGroups: "other"
  std::string name;
  std::string group;
  LayerOptions options;
  RuntimeSettings settings;
};

// "blk.12.attn" -> "blk.*.attn"
std::string group_of(std::string_view layer_name);

// Layers by index. Written under a lock, read without one: what was added
// never moves and never changes.
class LayerTable {
 public:
  static constexpr std::uint32_t kChunk = 256, kMostChunks = 256;
  static constexpr std::uint32_t kMost = kChunk * kMostChunks;

  ~LayerTable();

  std::uint32_t size() const { return size_.load(std::memory_order_acquire); }

  // index < size()
  const Layer& at(std::uint32_t index) const {
    return *chunks_[index / kChunk].load(
        std::memory_order_acquire)[index % kChunk];
  }

  // nullptr when there is none of that name.
  const Layer* find(std::string_view name) const;

  // size() < kMost. Sets the layer's index.
  void add(std::unique_ptr<Layer> layer);

 private:
  std::array<std::atomic<Layer**>, kMostChunks> chunks_ = {};
  std::atomic<std::uint32_t> size_{0};
};

}  // namespace attnguard::runtime_internal

#endif  // ATTNGUARD_GUARD_RUNTIME_LAYER_H_
