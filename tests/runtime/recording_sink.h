// A sink that keeps what it was told.
#ifndef ATTNGUARD_TESTS_RUNTIME_RECORDING_SINK_H_
#define ATTNGUARD_TESTS_RUNTIME_RECORDING_SINK_H_

#include <mutex>
#include <string>
#include <vector>

#include "guard/runtime/sink.h"

namespace attnguard {

class RecordingSink final : public ViolationSink {
 public:
  struct Record {
    LiveCheck check;
    std::string text, problem;
    std::vector<Finding> findings;
    bool in_scratch;
  };

  void on_violation(const Violation& violation) noexcept override {
    const std::lock_guard lock(mutex_);
    records_.push_back({violation.check,
                        describe(violation),
                        violation.call == nullptr
                            ? std::string()
                            : violation.call->problem->text(),
                        {violation.findings.begin(), violation.findings.end()},
                        violation.in_scratch});
  }
  void after_fork_in_child() noexcept override { ++forks; }

  std::vector<Record> records() const {
    const std::lock_guard lock(mutex_);
    return records_;
  }
  std::string text() const {
    std::string all;
    for (const Record& record : records()) all += record.text + "\n";
    return all;
  }

  int forks = 0;

 private:
  mutable std::mutex mutex_;
  std::vector<Record> records_;
};

// Checks of the list are on, the rest is off; every call, no budget.
inline RuntimePolicy look_always(std::vector<LiveCheck> on) {
  RuntimePolicy policy;
  policy.max_overhead.reset();
  RuntimePatch& patch = policy.patches.emplace_back();
  patch.sample_every = 1;
  patch.rows = 64;
  patch.shadow_every = 1;
  for (LiveCheck check : all_live_checks())
    patch.severities[check] = Severity::kOff;
  for (LiveCheck check : on) patch.severities[check] = Severity::kError;
  return policy;
}

}  // namespace attnguard

#endif  // ATTNGUARD_TESTS_RUNTIME_RECORDING_SINK_H_
