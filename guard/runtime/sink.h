// The ways out of the guard: violations as they happen, counters when asked.
#ifndef ATTNGUARD_GUARD_RUNTIME_SINK_H_
#define ATTNGUARD_GUARD_RUNTIME_SINK_H_

#include "guard/runtime/counters.h"
#include "guard/runtime/violation.h"

namespace attnguard {

// Carries out log, callback, dump and abort. The guard itself counts, falls
// back and throws, in this order after the sink returned.
class ViolationSink {
 public:
  virtual ~ViolationSink() = default;

  // Called in the thread that observed, possibly from many threads at once,
  // once for each check that found something in a call. Must not block: what
  // takes long is copied and done elsewhere.
  virtual void on_violation(const Violation& violation) noexcept = 0;

  // Called in the child of a fork, where no other thread exists any more.
  virtual void after_fork_in_child() noexcept {}
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_RUNTIME_SINK_H_
