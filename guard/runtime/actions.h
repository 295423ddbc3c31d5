// Carries out what a policy says follows a violation: log, callback, dump and
// abort. Give it to Guard::create as the sink:
//
//   auto sink = std::make_shared<ActionSink>(policy, "my engine", hooks);
//   auto guard = Guard::create(policy, {.sink = sink});
//
// The library itself never prints: without a log function lines are counted
// and go nowhere.
#ifndef ATTNGUARD_GUARD_RUNTIME_ACTIONS_H_
#define ATTNGUARD_GUARD_RUNTIME_ACTIONS_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "guard/policy/runtime_policy.h"
#include "guard/runtime/dump_writer.h"
#include "guard/runtime/sink.h"
#include "guard/runtime/violation.h"

namespace attnguard {

// What the host gives. All may be called from any thread, several at once, and
// must not block; what they throw is caught and counted.
struct ActionHooks {
  LogFunction log;
  std::function<void(const Violation& violation)> callback;
};

struct ActionCounters {
  std::uint64_t log_lines = 0;         // Given to the host.
  std::uint64_t log_suppressed = 0;    // More than log_per_minute.
  std::uint64_t log_unheard = 0;       // There is no log function.
  std::uint64_t callbacks = 0;         // Made.
  std::uint64_t callback_missing = 0;  // Asked for, and none was given.
  std::uint64_t hook_failures = 0;     // A hook threw.
  DumpCounters dumps;
};

// Lets through so many events a minute, in bursts of as many.
class RateLimit {
 public:
  explicit RateLimit(double per_minute);

  // Whether an event at this time, in nanoseconds of any steady clock, may
  // pass. Any thread, no lock.
  bool admit(std::int64_t now) noexcept;

 private:
  std::int64_t interval_ = 0;      // nanoseconds between events; 0: none pass
  std::int64_t burst_ = 0;         // interval_ times the events of a burst
  std::atomic<std::int64_t> due_;  // When the bucket is full again.
};

class ActionSink final : public ViolationSink {
 public:
  ActionSink(const RuntimePolicy& policy, std::string engine,
             ActionHooks hooks = {});

  void on_violation(const Violation& violation) noexcept override;
  void after_fork_in_child() noexcept override;

  // Waits for dumps; false: some are not written yet.
  bool flush(std::chrono::milliseconds most) const {
    return dumps_.flush(most);
  }

  ActionCounters counters() const;

 private:
  void log(const Violation& violation) noexcept;
  void call_back(const Violation& violation) noexcept;

  ActionHooks hooks_;
  RateLimit log_limit_;
  DumpWriter dumps_;
  std::atomic<std::uint64_t> log_lines_ = 0, log_suppressed_ = 0,
                             log_unheard_ = 0, callbacks_ = 0,
                             callback_missing_ = 0, hook_failures_ = 0;
  std::atomic<std::uint64_t> since_last_line_ = 0;  // Suppressed lines.
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_RUNTIME_ACTIONS_H_
