#include "guard/engine/memory.h"

#include <cstring>
#include <new>
#include <string>

namespace attnguard {
namespace {

constexpr std::align_val_t kAlignment{64};

class HostMemory final : public Memory {
 public:
  Result<void*> allocate(std::size_t size) override {
    void* data = ::operator new(size, kAlignment, std::nothrow);
    if (data == nullptr)
      return Status(
          StatusCode::kOutOfMemory,
          "the host has no " + std::to_string(size) + " bytes in one piece");
    return data;
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

Result<void*> allocate_tensor(Memory& memory, std::string_view name,
                              std::size_t size, std::size_t margin) {
  Result<void*> data = memory.allocate_guarded(size, margin);
  if (data.ok() && data.value() != nullptr) return data;
  const Status said =
      data.ok() ? Status(StatusCode::kEngineFailure,
                         "the engine's memory returned success and no memory")
                : data.status();
  std::string message = "no memory for the " + std::string(name) + " tensor (" +
                        std::to_string(size) + " bytes): " + said.message();
  if (said.code() == StatusCode::kOutOfMemory)
    message += "; a smaller problem needs less";
  return Status(said.code(), message);
}

}  // namespace attnguard
