// What an engine's process leaves in shared memory for the process that
// started it, so that it can still be read when the engine's process is dead.
// Written by signal handlers: plain values and lock-free atomics only.
#ifndef ATTNGUARD_CI_ISOLATE_CONTROL_BLOCK_H_
#define ATTNGUARD_CI_ISOLATE_CONTROL_BLOCK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace attnguard {

// An access outside of the tensors of the call at hand.
struct AccessRecord {
  std::int32_t range;  // Index into the request's ranges.
  std::int32_t kind;   // StrayAccess::Kind
  std::int64_t byte;   // From the tensor's start.
  std::atomic<std::uint32_t> complete;
};

struct ControlBlock {
  static constexpr std::uint32_t kMostAccesses = 32;
  static constexpr std::size_t kReasonBytes = 512;

  std::atomic<std::uint32_t> num_accesses;
  AccessRecord accesses[kMostAccesses];

  // The signal that the process dies of, 0 while it lives.
  std::atomic<std::int32_t> signal;
  std::uint64_t address;  // That could not be accessed; of SIGSEGV, SIGBUS
  std::int32_t in_idle_memory;  // It is of a tensor that is not in the call.

  // what() of the exception that nobody caught.
  std::atomic<std::uint32_t> has_reason;
  char reason[kReasonBytes];

  void clear() {
    num_accesses = 0;
    for (AccessRecord& access : accesses) access.complete = 0;
    signal = 0;
    address = 0;
    in_idle_memory = 0;
    has_reason = 0;
  }
};

static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

// The first bytes of the shared memory are the control block's.
inline constexpr std::size_t kControlBytes = 4096;
static_assert(sizeof(ControlBlock) <= kControlBytes);

}  // namespace attnguard

#endif  // ATTNGUARD_CI_ISOLATE_CONTROL_BLOCK_H_
