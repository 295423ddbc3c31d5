#include "ci/isolate/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <new>
#include <string>

namespace attnguard {
namespace {

constexpr std::int64_t kAlignment = 64;

// Untouched memory between blocks: what runs past the margins too ends here,
// and the tensor that it left is still known.
constexpr std::int64_t kGapBytes = 1 << 16;

// Smaller blocks keep their pages for the next one in the same place.
constexpr std::int64_t kReturnedBytes = 1 << 20;

constexpr std::int64_t kLeastBytes = 1 << 26;

std::int64_t limit_of(__rlimit_resource resource) {
  rlimit limit = {};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return INT64_MAX;
  return static_cast<std::int64_t>(
      std::min<rlim_t>(limit.rlim_cur, static_cast<rlim_t>(INT64_MAX)));
}

// Addresses, not memory: what is never touched costs nothing. More than there
// is memory, as blocks of many sizes leave holes.
std::int64_t wanted_bytes() {
  const std::int64_t memory = sysconf(_SC_PHYS_PAGES) * page_bytes();
  const std::int64_t addresses = limit_of(RLIMIT_AS) / 4;
  const std::int64_t wanted =
      std::min({2 * memory, addresses, limit_of(RLIMIT_FSIZE)});
  return wanted / page_bytes() * page_bytes();
}

Status failed(const char* call) {
  return {StatusCode::kOutOfMemory,
          std::string("no memory to share with the engine's process: ") + call +
              ": " + std::strerror(errno) +
              "; --no-isolate runs the engine in this process"};
}

}  // namespace

std::int64_t page_bytes() {
  static const std::int64_t bytes = sysconf(_SC_PAGESIZE);
  return bytes;
}

std::int64_t whole_pages(std::int64_t bytes) {
  return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

Result<std::shared_ptr<SharedMemory>> SharedMemory::create() {
  const int fd = memfd_create("attnguard", MFD_CLOEXEC);
  if (fd < 0) return failed("memfd_create");
  void* base = MAP_FAILED;
  std::int64_t size = wanted_bytes();
  for (; size >= kLeastBytes; size = size / 2 / page_bytes() * page_bytes()) {
    if (ftruncate(fd, size) != 0) continue;
    base = mmap(nullptr, static_cast<std::size_t>(size), PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (base != MAP_FAILED) break;
  }
  if (base == MAP_FAILED) {
    const Status status = failed("mmap");
    close(fd);
    return status;
  }
  // Far more addresses than memory: a core dump would take for ever.
  madvise(base, static_cast<std::size_t>(size), MADV_DONTDUMP);
  return std::shared_ptr<SharedMemory>(
      new SharedMemory(fd, static_cast<std::byte*>(base), size));
}

SharedMemory::SharedMemory(int fd, std::byte* base, std::int64_t size)
    : fd_(fd), base_(base), size_(size) {
  new (base_) ControlBlock;
  control().clear();
  free_[whole_pages(kControlBytes) + kGapBytes] = size_;
}

SharedMemory::~SharedMemory() {
  munmap(base_, static_cast<std::size_t>(size_));
  close(fd_);
}

// The first free range that is long enough.
std::int64_t SharedMemory::take_range(std::int64_t bytes) {
  for (auto range = free_.begin(); range != free_.end(); ++range) {
    const auto [begin, end] = *range;
    if (end - begin < bytes) continue;
    free_.erase(range);
    if (end - begin > bytes) free_[begin + bytes] = end;
    return begin;
  }
  return -1;
}

void SharedMemory::give_range(std::int64_t begin, std::int64_t end) {
  auto next = free_.lower_bound(begin);
  if (next != free_.end() && next->first == end) {
    end = next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin() && std::prev(next)->second == begin)
    std::prev(next)->second = end;
  else
    free_[begin] = end;
}

Status SharedMemory::no_room(std::size_t size) const {
  return {StatusCode::kOutOfMemory,
          "the memory that is shared with the engine's process (" +
              std::to_string(size_) + " bytes) has no " + std::to_string(size) +
              " bytes in one piece left; --no-isolate runs the engine in this "
              "process"};
}

Result<void*> SharedMemory::allocate_guarded(std::size_t size,
                                             std::size_t margin) {
  if (size >= static_cast<std::size_t>(size_) ||
      margin >= static_cast<std::size_t>(size_))
    return no_room(size);
  SharedBlock block;
  block.size = static_cast<std::int64_t>(size);
  block.margin = static_cast<std::int64_t>(margin);
  const std::int64_t used =
      (block.size + kAlignment - 1) / kAlignment * kAlignment;
  const std::int64_t around = whole_pages(block.margin);
  const std::int64_t bytes = whole_pages(used) + 2 * around;
  block.begin = take_range(bytes + kGapBytes);
  if (block.begin < 0) return no_room(size);
  block.end = block.begin + bytes;
  block.tensor = block.end - around - used;
  // A page that cannot be had would be a SIGBUS when it is first touched.
  if (bytes > 0 && fallocate(fd_, 0, block.begin, bytes) != 0) {
    const Status status = failed("fallocate");  // Before errno changes.
    give_range(block.begin, block.end + kGapBytes);
    return status;
  }
  blocks_[block.begin] = block;
  return static_cast<void*>(base_ + block.tensor - block.margin);
}

void SharedMemory::release(void* data) {
  const SharedBlock* found = find(data);
  if (found == nullptr) return;
  const SharedBlock block = *found;
  if (block.end - block.begin >= kReturnedBytes &&
      fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, block.begin,
                block.end - block.begin) != 0) {
    // Its pages stay for the next block here.
  }
  blocks_.erase(block.begin);
  give_range(block.begin, block.end + kGapBytes);
}

const SharedBlock* SharedMemory::find(const void* address) const {
  const auto* byte = static_cast<const std::byte*>(address);
  if (byte < base_ || byte >= base_ + size_) return nullptr;
  const std::int64_t offset = byte - base_;
  auto block = blocks_.upper_bound(offset);
  if (block == blocks_.begin()) return nullptr;
  --block;
  // One past the end, too: that is where an empty tensor lies.
  return offset <= block->second.end ? &block->second : nullptr;
}

Status SharedMemory::copy_in(void* to, const void* from, std::size_t size) {
  std::memcpy(to, from, size);
  return ok_status();
}

Status SharedMemory::copy_out(void* to, const void* from, std::size_t size) {
  std::memcpy(to, from, size);
  return ok_status();
}

std::vector<StrayAccess> SharedMemory::take_stray_accesses() {
  return std::exchange(strays_, {});
}

}  // namespace attnguard
