// Memory that an engine's process shares with this one: tensors are never
// copied. One memfd without a name, so nothing is left behind however the
// processes end:
//
//   | control block | gap | margin | tensor | margin | gap | margin | ...
//
// Blocks are whole pages. A tensor ends where its trailing margin's pages
// begin, or up to 63 bytes before: its start is aligned to 64 bytes. Margins
// are ordinary memory here; in the engine's process they are out of bounds,
// and so is every block that is not of the call at hand. Gaps are never
// touched and take no memory.
//
// Not for several threads at once.
#ifndef ATTNGUARD_CI_ISOLATE_SHARED_MEMORY_H_
#define ATTNGUARD_CI_ISOLATE_SHARED_MEMORY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "ci/isolate/control_block.h"
#include "guard/engine/memory.h"

namespace attnguard {

// Bytes of the shared memory, counted from its start.
struct SharedBlock {
  std::int64_t begin = 0, end = 0;  // Whole pages, margins included.
  std::int64_t tensor = 0, size = 0;
  std::int64_t margin = 0;

  bool operator==(const SharedBlock&) const = default;
};

class SharedMemory final : public Memory {
 public:
  // kOutOfMemory when the system gives no shared memory.
  static Result<std::shared_ptr<SharedMemory>> create();
  ~SharedMemory() override;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  Result<void*> allocate(std::size_t size) override {
    return allocate_guarded(size, 0);
  }
  Result<void*> allocate_guarded(std::size_t size, std::size_t margin) override;
  void release(void* data) override;
  Status copy_in(void* to, const void* from, std::size_t size) override;
  Status copy_out(void* to, const void* from, std::size_t size) override;
  bool host_accessible() const override { return true; }
  std::vector<StrayAccess> take_stray_accesses() override;

  void note(const StrayAccess& access) { strays_.push_back(access); }

  int fd() const { return fd_; }
  ControlBlock& control() { return *reinterpret_cast<ControlBlock*>(base_); }

  // The block that the address lies in, margins included, or nullptr.
  const SharedBlock* find(const void* address) const;
  std::int64_t offset_of(const void* address) const {
    return static_cast<const std::byte*>(address) - base_;
  }
  std::byte* at(std::int64_t offset) { return base_ + offset; }

 private:
  SharedMemory(int fd, std::byte* base, std::int64_t size);

  Status no_room(std::size_t size) const;
  std::int64_t take_range(std::int64_t bytes);  // -1: there is none
  void give_range(std::int64_t begin, std::int64_t end);

  int fd_;
  std::byte* base_;
  std::int64_t size_;
  std::map<std::int64_t, std::int64_t> free_;   // begin -> end
  std::map<std::int64_t, SharedBlock> blocks_;  // by begin
  std::vector<StrayAccess> strays_;
};

// Bytes of a page, and a size rounded up to whole pages.
std::int64_t page_bytes();
std::int64_t whole_pages(std::int64_t bytes);

}  // namespace attnguard

#endif  // ATTNGUARD_CI_ISOLATE_SHARED_MEMORY_H_
