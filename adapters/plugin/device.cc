#include "adapters/plugin/device.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "adapters/plugin/calls.h"

namespace attnguard::plugin {
namespace {

constexpr std::uintptr_t kAlignment = 64;

class DeviceMemory final : public Memory {
 public:
  explicit DeviceMemory(std::shared_ptr<Instance> instance)
      : instance_(std::move(instance)) {}

  Result<void*> allocate(std::size_t size) override {
    return instance_->allocate(size);
  }
  void release(void* data) override { instance_->release(data); }
  Status copy_in(void* to, const void* from, std::size_t size) override {
    return instance_->copy_in(to, from, size);
  }
  Status copy_out(void* to, const void* from, std::size_t size) override {
    return instance_->copy_out(to, from, size);
  }
  bool host_accessible() const override {
    return instance_->description().host_accessible;
  }

 private:
  std::shared_ptr<Instance> instance_;
};

Status try_copies(Memory& memory, std::byte* data, std::size_t size) {
  std::vector<std::byte> sent(size), received(size);
  for (std::size_t i = 0; i < size; ++i)
    sent[i] = static_cast<std::byte>(i * 7 + i / 251);
  Status status = memory.copy_in(data, sent.data(), size);
  if (status.ok()) status = memory.copy_out(received.data(), data, size);
  if (!status.ok()) return status;
  if (sent != received)
    return engine_failure(
        "copy_out() does not return what copy_in() was given");
  // From the middle of an allocation.
  const std::size_t skip = size / 2 + 1;
  status = memory.copy_out(received.data(), data + skip, size - skip);
  if (!status.ok()) return status;
  if (!std::equal(sent.begin() + static_cast<std::ptrdiff_t>(skip), sent.end(),
                  received.begin()))
    return engine_failure(
        "copy_out() returns something else from the middle of what was "
        "allocated");
  return ok_status();
}

Status try_memory(Memory& memory) {
  constexpr std::size_t kSize = 10007;
  const Result<void*> allocated = memory.allocate(kSize);
  if (!allocated.ok())
    return {allocated.status().code(),
            "no memory to try its copies with (" + std::to_string(kSize) +
                " bytes): " + allocated.status().message()};
  void* data = allocated.value();
  Status status;
  if (memory.host_accessible() &&
      reinterpret_cast<std::uintptr_t>(data) % kAlignment != 0)
    status = engine_failure(
        "allocate() gave an address that is not a multiple of 64, and "
        "host_accessible is 1");
  else
    status = try_copies(memory, static_cast<std::byte*>(data), kSize);
  memory.release(data);
  return status;
}

}  // namespace

Result<std::shared_ptr<Memory>> device_memory(
    const std::shared_ptr<Instance>& instance) {
  const std::shared_ptr<Memory> memory =
      std::make_shared<DeviceMemory>(instance);
  const Status status = try_memory(*memory);
  if (!status.ok())
    return Status(status.code(),
                  "plugin '" + instance->path() + "': " + status.message());
  return memory;
}

}  // namespace attnguard::plugin
