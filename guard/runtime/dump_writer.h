// Writes calls that were found wrong to files, without making the engine wait
// for a disk: the tensors are copied into memory that was allocated at the
// start, and a thread of its own writes them. What was reported without a call
// becomes a file without tensors.
//
// Nothing is lost silently: whatever is not written is counted by its reason,
// and said in the log. A file appears under its name only when it is whole and
// on disk.
#ifndef ATTNGUARD_GUARD_RUNTIME_DUMP_WRITER_H_
#define ATTNGUARD_GUARD_RUNTIME_DUMP_WRITER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "guard/policy/runtime_policy.h"
#include "guard/runtime/violation.h"

namespace attnguard {

// Takes one line without a line break; may be called from any thread.
using LogFunction = std::function<void(std::string_view line)>;

struct DumpCounters {
  std::uint64_t written = 0;        // Files on disk.
  std::uint64_t bytes = 0;          // In them.
  std::uint64_t dropped_limit = 0;  // DumpSettings::max_files are taken, or
                                    // kept for what was not seen before.
  std::uint64_t dropped_busy = 0;   // Every buffer waits to be written.
  std::uint64_t dropped_size = 0;   // One row with its keys is too large.
  std::uint64_t no_tensors = 0;     // The canary's: made anew by `check`.
  std::uint64_t failed = 0;         // Disk full, no such folder, no memory ...
};

class DumpWriter {
 public:
  // Calls that may wait to be written.
  static constexpr int kSlots = 2;

  // Allocates the buffers and nothing else: no file is touched before there is
  // a violation. `engine` is what files are labelled with. `log` may be empty.
  DumpWriter(const DumpSettings& settings, std::string engine, LogFunction log);

  // Waits until what was taken is written.
  ~DumpWriter();
  DumpWriter(const DumpWriter&) = delete;
  DumpWriter& operator=(const DumpWriter&) = delete;

  // Copies what the file will hold. No lock, no file; memory is allocated only
  // for names and numbers. False when it was dropped. Any thread.
  bool take(const Violation& violation) noexcept;

  // Waits until what was taken so far is written; false: not in this time.
  bool flush(std::chrono::milliseconds most) const;

  // In a child process: what the parent had taken is the parent's to write, and
  // files are counted anew. take() notices by itself too.
  void after_fork() noexcept;

  DumpCounters counters() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_RUNTIME_DUMP_WRITER_H_
