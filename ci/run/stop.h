// Why a run ends before its last problem: its time limit, or a signal.
#ifndef ATTNGUARD_CI_RUN_STOP_H_
#define ATTNGUARD_CI_RUN_STOP_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "guard/engine/engine.h"

namespace attnguard {

class StopSource {
 public:
  // The time runs from now on. With catch_signals the first SIGINT or SIGTERM
  // stops the run, and the second ends the process as usual; one object at a
  // time, which puts back what it found.
  StopSource(std::optional<std::int64_t> limit_seconds, bool catch_signals);
  ~StopSource();
  StopSource(const StopSource&) = delete;
  StopSource& operator=(const StopSource&) = delete;

  // Empty: go on. "the time limit of 60 s was over", "SIGINT ended the run".
  std::string reason() const;
  bool stopped() const { return signal() != 0 || is_late(); }

  // The one that was caught, or 0.
  int signal() const;

 private:
  bool is_late() const;

  struct Handlers;
  std::optional<std::int64_t> limit_seconds_;
  std::chrono::steady_clock::time_point start_;
  std::unique_ptr<Handlers> handlers_;
};

// The engine, which refuses calls once the run is stopped: a problem takes
// hundreds of them. `stop` outlives it.
Engine stoppable(Engine engine, const StopSource& stop);

}  // namespace attnguard

#endif  // ATTNGUARD_CI_RUN_STOP_H_
