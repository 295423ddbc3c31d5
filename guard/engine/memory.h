// Where an engine's tensors live. The guard reads and writes them only through
// these four functions, so the memory may be a device's that the host cannot
// touch. host_memory() is plain heap memory, aligned to 64 bytes.
#ifndef ATTNGUARD_GUARD_ENGINE_MEMORY_H_
#define ATTNGUARD_GUARD_ENGINE_MEMORY_H_

#include <cstddef>
#include <memory>

#include "guard/base/status.h"

namespace attnguard {

class Memory {
 public:
  virtual ~Memory() = default;

  // nullptr when there is not enough memory. `size` is in bytes.
  virtual void* allocate(std::size_t size) = 0;
  virtual void release(void* data) = 0;

  // Host to this memory and back. Complete when they return.
  virtual Status copy_in(void* to, const void* from, std::size_t size) = 0;
  virtual Status copy_out(void* to, const void* from, std::size_t size) = 0;

  // True when the host may use the addresses directly: nothing is copied.
  virtual bool host_accessible() const = 0;
};

std::shared_ptr<Memory> host_memory();

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_ENGINE_MEMORY_H_
