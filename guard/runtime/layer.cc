#include "guard/runtime/layer.h"

#include <utility>

namespace attnguard::runtime_internal {

std::string group_of(std::string_view layer_name) {
  std::string group;
  bool in_number = false;
  for (char c : layer_name) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) group += c;
    if (digit && !in_number) group += '*';
    in_number = digit;
  }
  return group;
}

LayerTable::~LayerTable() {
  for (std::uint32_t i = 0; i < size(); ++i) delete &at(i);
  for (auto& chunk : chunks_) delete[] chunk.load();
}

const Layer* LayerTable::find(std::string_view name) const {
  for (std::uint32_t i = 0; i < size(); ++i)
    if (at(i).name == name) return &at(i);
  return nullptr;
}

void LayerTable::add(std::unique_ptr<Layer> layer) {
  const std::uint32_t index = size();
  layer->index = index;
  std::atomic<Layer**>& chunk = chunks_[index / kChunk];
  if (chunk.load() == nullptr)
    chunk.store(new Layer*[kChunk](), std::memory_order_release);
  chunk.load()[index % kChunk] = layer.release();
  size_.store(index + 1, std::memory_order_release);
}

}  // namespace attnguard::runtime_internal
