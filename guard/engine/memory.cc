#include "guard/engine/memory.h"

#include <cstring>
#include <new>

namespace attnguard {
namespace {

constexpr std::align_val_t kAlignment{64};

class HostMemory final : public Memory {
 public:
  void* allocate(std::size_t size) override {
    return ::operator new(size, kAlignment, std::nothrow);
  }
  void release(void* data) override { ::operator delete(data, kAlignment); }
  Status copy_in(void* to, const void* from, std::size_t size) override {
    std::memcpy(to, from, size);
    return ok_status();
  }
  Status copy_out(void* to, const void* from, std::size_t size) override {
    std::memcpy(to, from, size);
    return ok_status();
  }
  bool host_accessible() const override { return true; }
};

}  // namespace

std::shared_ptr<Memory> host_memory() {
  static const std::shared_ptr<Memory> memory = std::make_shared<HostMemory>();
  return memory;
}

}  // namespace attnguard
