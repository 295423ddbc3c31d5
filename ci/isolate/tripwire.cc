#include "ci/isolate/tripwire.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include "guard/engine/memory.h"

namespace attnguard {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS};

// Further out than this no tensor is named: it is memory of another call.
constexpr std::int64_t kNearBytes = 1 << 17;

// An access that faults for another reason than the protection would come
// back for ever.
constexpr std::uint32_t kMostFaults = 4096;

constexpr std::size_t kMostOpened = 1024;
constexpr std::size_t kStackBytes = 1 << 16;

// All that the handler reads; plain memory that only expose() changes, while
// no engine runs.
struct State {
  std::byte* base = nullptr;
  std::int64_t size = 0;
  std::int64_t page = 4096;
  ControlBlock* control = nullptr;
  SharedBlock ranges[Tripwire::kMostRanges];
  std::size_t num_ranges = 0;
  std::atomic<std::uint32_t> faults{0};
  std::atomic<std::size_t> num_opened{0};
  std::int64_t opened[kMostOpened] = {};
};

State state;
alignas(64) char alternative_stack[kStackBytes];

struct Access {
  StrayAccess::Kind kind = StrayAccess::Kind::kUnknown;
  bool is_jump = false;  // The processor wanted to run what is there.
};

Access access_of([[maybe_unused]] void* context) {
#if defined(__x86_64__)
  const auto error =
      static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR];
  return {
      (error & 2) != 0 ? StrayAccess::Kind::kWrite : StrayAccess::Kind::kRead,
      (error & 16) != 0};
#else
  return {};
#endif
}

std::int64_t distance(const SharedBlock& block, std::int64_t offset) {
  if (offset < block.tensor) return block.tensor - offset;
  return std::max<std::int64_t>(offset - (block.tensor + block.size) + 1, 0);
}

// The tensor that the offset is next to, or -1.
int nearest_range(std::int64_t offset) {
  int nearest = -1;
  for (std::size_t i = 0; i < state.num_ranges; ++i)
    if (distance(state.ranges[i], offset) < kNearBytes &&
        (nearest < 0 || distance(state.ranges[i], offset) <
                            distance(state.ranges[nearest], offset)))
      nearest = static_cast<int>(i);
  return nearest;
}

void write_down(int range, std::int64_t byte, StrayAccess::Kind kind) {
  const std::uint32_t index = state.control->num_accesses.fetch_add(1);
  if (index >= ControlBlock::kMostAccesses) return;
  AccessRecord& record = state.control->accesses[index];
  record.range = range;
  record.byte = byte;
  record.kind = static_cast<std::int32_t>(kind);
  record.complete.store(1, std::memory_order_release);
}

// Whether the access was to a margin, and may now be tried again.
bool open_margin(const SharedBlock& block, std::int64_t offset,
                 StrayAccess::Kind kind) {
  if (offset < block.begin || offset >= block.end) return false;
  const std::size_t index = state.num_opened.fetch_add(1);
  if (index >= kMostOpened) return false;
  const std::int64_t page = offset / state.page * state.page;
  state.opened[index] = page;
  // What was only read stays closed to writes.
  const int protection =
      kind == StrayAccess::Kind::kRead ? PROT_READ : PROT_READ | PROT_WRITE;
  return mprotect(state.base + page, static_cast<std::size_t>(state.page),
                  protection) == 0;
}

// True when the engine may go on.
bool survives(const std::byte* address, const Access& access) {
  const std::int64_t offset = address - state.base;
  const int range = nearest_range(offset);
  state.control->in_idle_memory = range < 0 ? 1 : 0;
  if (range < 0) return false;
  const SharedBlock& block = state.ranges[range];
  write_down(range, offset - block.tensor, access.kind);
  return !access.is_jump && state.faults.fetch_add(1) < kMostFaults &&
         open_margin(block, offset, access.kind);
}

void on_bad_access(int signal, siginfo_t* info, void* context) {
  const int saved = errno;
  const auto* address = static_cast<const std::byte*>(info->si_addr);
  // Of a signal that somebody sent there is no address.
  const bool has_address = info->si_code > 0;
  if (has_address && signal == SIGSEGV && address >= state.base &&
      address < state.base + state.size &&
      survives(address, access_of(context))) {
    errno = saved;
    return;
  }
  state.control->address =
      has_address ? reinterpret_cast<std::uint64_t>(address) : 0;
  state.control->signal = signal;
  // Ends the process as soon as this handler returns.
  ::signal(signal, SIG_DFL);
  raise(signal);
}

void take_signals() {
  struct sigaction action = {};
  action.sa_sigaction = on_bad_access;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (int signal : kSignals) sigaction(signal, &action, nullptr);
}

void keep_reason(const char* reason) {
  ControlBlock& control = *state.control;
  std::strncpy(control.reason, reason, ControlBlock::kReasonBytes - 1);
  control.reason[ControlBlock::kReasonBytes - 1] = '\0';
  control.has_reason = 1;
}

// An exception that leaves an OpenMP region, or a thread, comes here.
[[noreturn]] void on_terminate() {
  try {
    if (std::current_exception() != nullptr) throw;
    keep_reason("std::terminate was called");
  } catch (const std::exception& error) {
    keep_reason(error.what());
  } catch (...) {
    keep_reason("something that is not a std::exception");
  }
  std::abort();
}

void protect(std::int64_t begin, std::int64_t end, int protection) {
  if (end > begin)
    mprotect(state.base + begin, static_cast<std::size_t>(end - begin),
             protection);
}

// The pages that hold the tensor.
std::int64_t first_page(const SharedBlock& block) {
  return block.tensor / state.page * state.page;
}
std::int64_t last_page_end(const SharedBlock& block) {
  return whole_pages(block.tensor + block.size);
}

bool contains(const std::vector<SharedBlock>& blocks,
              const SharedBlock& wanted) {
  return std::find(blocks.begin(), blocks.end(), wanted) != blocks.end();
}

}  // namespace

Result<Tripwire*> Tripwire::set_up(int memory_fd) {
  struct stat info = {};
  if (fstat(memory_fd, &info) != 0)
    return Status(StatusCode::kIo, "the shared memory is missing");
  void* base = mmap(nullptr, static_cast<std::size_t>(info.st_size), PROT_NONE,
                    MAP_SHARED | MAP_NORESERVE, memory_fd, 0);
  if (base == MAP_FAILED)
    return Status(
        StatusCode::kOutOfMemory,
        std::string("cannot map the shared memory: ") + std::strerror(errno));
  // Far more addresses than memory: a core dump would take for ever.
  madvise(base, static_cast<std::size_t>(info.st_size), MADV_DONTDUMP);
  state.base = static_cast<std::byte*>(base);
  state.size = info.st_size;
  state.page = page_bytes();
  protect(0, whole_pages(kControlBytes), PROT_READ | PROT_WRITE);
  state.control = reinterpret_cast<ControlBlock*>(base);
  // So that a stack that ran over can be told, too.
  stack_t stack = {};
  stack.ss_sp = alternative_stack;
  stack.ss_size = kStackBytes;
  sigaltstack(&stack, nullptr);
  std::set_terminate(on_terminate);
  take_signals();
  static Tripwire only;
  return &only;
}

std::byte* Tripwire::at(std::int64_t offset) const {
  return state.base + offset;
}

Status Tripwire::expose(const std::vector<SharedBlock>& ranges) {
  take_signals();
  if (ranges.size() > kMostRanges)
    return invalid_argument("a call has too many tensors");
  for (const SharedBlock& block : open_)
    if (!contains(ranges, block)) protect(block.begin, block.end, PROT_NONE);
  for (const SharedBlock& block : ranges)
    if (!contains(open_, block))
      protect(first_page(block), last_page_end(block), PROT_READ | PROT_WRITE);
  open_ = ranges;
  std::copy(ranges.begin(), ranges.end(), state.ranges);
  state.num_ranges = ranges.size();
  return ok_status();
}

void Tripwire::open_margins(const SharedBlock& block) const {
  protect(block.begin, block.end, PROT_READ | PROT_WRITE);
}

void Tripwire::rearm() {
  const std::size_t count = std::min(state.num_opened.load(), kMostOpened);
  for (std::size_t i = 0; i < count; ++i)
    protect(state.opened[i], state.opened[i] + state.page, PROT_NONE);
  state.num_opened = 0;
  state.faults = 0;
}

}  // namespace attnguard
