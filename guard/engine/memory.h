// Where an engine's tensors live. The guard reads and writes them only through
// these functions, so the memory may be a device's that the host cannot touch.
// host_memory() is plain heap memory, aligned to 64 bytes.
#ifndef ATTNGUARD_GUARD_ENGINE_MEMORY_H_
#define ATTNGUARD_GUARD_ENGINE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "guard/base/status.h"

namespace attnguard {

// What an engine did outside of a tensor, as the memory itself noticed it.
struct StrayAccess {
  enum class Kind { kRead, kWrite, kUnknown } kind = Kind::kUnknown;
  const void* tensor = nullptr;  // The first byte of the nearest one.
  std::int64_t byte = 0;         // Counted from there; negative: before it.
};

class Memory {
 public:
  virtual ~Memory() = default;

  // `size` is in bytes. Never a success with nullptr: the message of a failure
  // is what the user reads, so it must say what this memory knows of the cause.
  // kOutOfMemory when there is not enough; kEngineFailure makes the call an
  // error of the engine's.
  virtual Result<void*> allocate(std::size_t size) = 0;
  virtual void release(void* data) = 0;

  // Memory for a tensor of `size` bytes with `margin` bytes before and after
  // it; the tensor starts `margin` bytes behind what is returned, and
  // release() takes what is returned. Engines own nothing of the margins, so
  // memory that can tell puts their pages out of bounds.
  virtual Result<void*> allocate_guarded(std::size_t size, std::size_t margin) {
    return allocate(size + 2 * margin);
  }

  // What was noticed since the last time this was asked; at most a few for
  // each tensor. Plain memory notices nothing.
  virtual std::vector<StrayAccess> take_stray_accesses() { return {}; }

  // Host to this memory and back. Complete when they return.
  virtual Status copy_in(void* to, const void* from, std::size_t size) = 0;
  virtual Status copy_out(void* to, const void* from, std::size_t size) = 0;

  // True when the host may use the addresses directly: nothing is copied.
  virtual bool host_accessible() const = 0;
};

std::shared_ptr<Memory> host_memory();

// memory.allocate_guarded() for the tensor called `name`. A failure keeps its
// code, and its message is preceded by the tensor and its size. A success with
// nullptr, which an old implementation may still return, is kEngineFailure.
Result<void*> allocate_tensor(Memory& memory, std::string_view name,
                              std::size_t size, std::size_t margin);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_ENGINE_MEMORY_H_
