#include "guard/runtime/actions.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

namespace attnguard {
namespace {

// How long an abort waits for the dump that explains it.
constexpr std::chrono::seconds kAbortWait{10};

constexpr double kMinute = 60e9;  // nanoseconds

std::int64_t steady_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

bool policy_dumps(const RuntimePolicy& policy) {
  for (const LiveCheckSettings& check : policy.resolve("").checks)
    if ((check.actions & kActionDump) != 0) return true;
  for (const RuntimePatch& patch : policy.patches) {
    for (const auto& [severity, actions] : patch.severity_actions)
      if ((actions & kActionDump) != 0) return true;
    for (const auto& [check, actions] : patch.check_actions)
      if ((actions & kActionDump) != 0) return true;
  }
  return false;
}

DumpSettings dump_settings(const RuntimePolicy& policy) {
  DumpSettings settings = policy.dump;
  // No buffers where none are ever filled.
  if (!policy_dumps(policy)) settings.max_files = 0;
  return settings;
}

}  // namespace

RateLimit::RateLimit(double per_minute)
    : due_(std::numeric_limits<std::int64_t>::min()) {
  if (!(per_minute > 0)) return;
  const double rate = std::clamp(per_minute, 1e-6, 1e9);
  interval_ = static_cast<std::int64_t>(kMinute / rate);
  burst_ = interval_ * static_cast<std::int64_t>(std::max(rate, 1.0));
}

bool RateLimit::admit(std::int64_t now) noexcept {
  if (interval_ == 0) return false;
  std::int64_t due = due_.load(std::memory_order_relaxed);
  for (;;) {
    const std::int64_t next = std::max(due, now) + interval_;
    if (next - now > burst_) return false;
    if (due_.compare_exchange_weak(due, next, std::memory_order_relaxed))
      return true;
  }
}

ActionSink::ActionSink(const RuntimePolicy& policy, std::string engine,
                       ActionHooks hooks)
    : hooks_(std::move(hooks)),
      log_limit_(policy.log_per_minute),
      dumps_(dump_settings(policy), std::move(engine), hooks_.log) {}

void ActionSink::on_violation(const Violation& violation) noexcept {
  if ((violation.actions & kActionLog) != 0) log(violation);
  if ((violation.actions & kActionCallback) != 0) call_back(violation);
  if ((violation.actions & kActionDump) != 0) dumps_.take(violation);
  if ((violation.actions & kActionAbort) != 0) {
    dumps_.flush(kAbortWait);
    std::abort();
  }
}

void ActionSink::log(const Violation& violation) noexcept {
  if (!hooks_.log) {
    ++log_unheard_;
    return;
  }
  // The last words before an abort are always said.
  if ((violation.actions & kActionAbort) == 0 &&
      !log_limit_.admit(steady_now())) {
    ++log_suppressed_;
    ++since_last_line_;
    return;
  }
  try {
    std::string line = "attnguard: " + describe(violation);
    if (const std::uint64_t more = since_last_line_.exchange(0); more > 0)
      line +=
          " (" + std::to_string(more) + " lines since the last are left out)";
    hooks_.log(line);
    ++log_lines_;
  } catch (...) {
    ++hook_failures_;
  }
}

void ActionSink::call_back(const Violation& violation) noexcept {
  if (!hooks_.callback) {
    ++callback_missing_;
    return;
  }
  try {
    hooks_.callback(violation);
    ++callbacks_;
  } catch (...) {
    ++hook_failures_;
  }
}

void ActionSink::after_fork_in_child() noexcept {
  for (std::atomic<std::uint64_t>* counter :
       {&log_lines_, &log_suppressed_, &log_unheard_, &callbacks_,
        &callback_missing_, &hook_failures_, &since_last_line_})
    *counter = 0;
  dumps_.after_fork();
}

ActionCounters ActionSink::counters() const {
  return {log_lines_,        log_suppressed_, log_unheard_,     callbacks_,
          callback_missing_, hook_failures_,  dumps_.counters()};
}

}  // namespace attnguard
