// canary: the ladder and census probes on the live kernel, in scratch memory:
// at the start, on each new class of shapes, and at intervals.
//
// A run is cut into steps, one probe call each, so that it is paid for bit by
// bit. One run is under way at a time, and any layer of its group whose kernel
// is alike goes on with it; whoever comes while another thread makes a step
// goes on without waiting.
#ifndef ATTNGUARD_GUARD_RUNTIME_CANARY_H_
#define ATTNGUARD_GUARD_RUNTIME_CANARY_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "guard/problem/problem.h"
#include "guard/runtime/counters.h"
#include "guard/runtime/live_check.h"

namespace attnguard::runtime_internal {

enum class CanaryStep {
  kNothing,  // Not due, or the reason is in Judgement::skipped.
  kPart,     // A call was made; more are to come.
  kDone,     // The judgement is that of a whole run.
};

class Canary {
 public:
  Canary();
  ~Canary();

  // One step of a run, where one is due and costs at most `room` nanoseconds.
  CanaryStep step(const LiveCall& live, std::int64_t now, double room,
                  std::uint64_t seed, Judgement& judgement);

  CanaryState state(std::int64_t now) const;

  void after_fork();

 private:
  struct Run;
  // A class of shapes of a layer group, and when it was finished last.
  struct Known {
    std::uint64_t key = 0;
    std::int64_t finished = 0;  // 0: never, or under way
    bool failed = false;        // The kernel could not run it.
  };
  static constexpr std::size_t kMostClasses = 512;

  Known* find_due(const LiveCall& live, std::int64_t now);
  CanaryStep advance(std::int64_t now, double room, Judgement& judgement);
  CanaryStep fail(SkipReason reason, std::int64_t now, Judgement& judgement);
  CanaryStep finish(std::int64_t now, Judgement& judgement);

  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;  // Guards all but the atomics.
  std::unique_ptr<Run> run_;
  std::array<Known, kMostClasses> known_ = {};
  std::size_t num_known_ = 0;
  Problem kept_problem_;  // Of the last run that found something.
  CostModel cost_;

  std::atomic<std::uint64_t> finished_{0}, classes_{0};
  std::atomic<std::int64_t> last_finished_{0};
};

// A problem of the live call's class that costs at most a few milliseconds:
// fewer entries and heads first, shorter then.
Problem canary_problem(const Problem& live);

}  // namespace attnguard::runtime_internal

#endif  // ATTNGUARD_GUARD_RUNTIME_CANARY_H_
