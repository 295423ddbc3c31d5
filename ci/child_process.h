// Runs a function in a child process, so that what it calls may crash or hang.
#ifndef ATTNGUARD_CI_CHILD_PROCESS_H_
#define ATTNGUARD_CI_CHILD_PROCESS_H_

#include <chrono>
#include <functional>
#include <iosfwd>
#include <string>

#include "guard/base/status.h"

namespace attnguard {

struct ChildResult {
  std::string out;  // What it wrote to its stream.
  std::string err;  // What it wrote to its standard output and error; the last
                    // 64 KiB.
  int exit_code = 0;
  int signal = 0;  // That ended it; 0 when it ended by itself.
  bool timed_out = false;

  bool by_itself() const { return signal == 0 && !timed_out; }
  // "crashed with signal 6 (Aborted): GGML_ASSERT(...) failed"
  std::string what_happened() const;
};

// Calls `body` in a fork of this process, which must have one thread. Its
// return value is the child's exit code. The child ends with this process, and
// after `timeout`.
Result<ChildResult> run_in_child(
    const std::function<int(std::ostream& out, std::ostream& err)>& body,
    std::chrono::seconds timeout);

}  // namespace attnguard

#endif  // ATTNGUARD_CI_CHILD_PROCESS_H_
