#include "ci/run/stop.h"

#include <signal.h>

#include <csignal>
#include <utility>

namespace attnguard {
namespace {

volatile std::sig_atomic_t caught = 0;

extern "C" void remember_signal(int number) { caught = number; }

const char* signal_name(int number) {
  return number == SIGINT ? "SIGINT" : "SIGTERM";
}

}  // namespace

struct StopSource::Handlers {
  struct sigaction interrupt {};
  struct sigaction terminate {};
};

StopSource::StopSource(std::optional<std::int64_t> limit_seconds,
                       bool catch_signals)
    : limit_seconds_(limit_seconds), start_(std::chrono::steady_clock::now()) {
  caught = 0;
  if (!catch_signals) return;
  handlers_ = std::make_unique<Handlers>();
  struct sigaction action {};
  action.sa_handler = remember_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESETHAND;  // Interrupts waits; the second one kills.
  sigaction(SIGINT, &action, &handlers_->interrupt);
  sigaction(SIGTERM, &action, &handlers_->terminate);
}

StopSource::~StopSource() {
  if (handlers_ == nullptr) return;
  sigaction(SIGINT, &handlers_->interrupt, nullptr);
  sigaction(SIGTERM, &handlers_->terminate, nullptr);
}

int StopSource::signal() const { return caught; }

bool StopSource::is_late() const {
  return limit_seconds_ && std::chrono::steady_clock::now() - start_ >=
                               std::chrono::seconds(*limit_seconds_);
}

std::string StopSource::reason() const {
  if (signal() != 0)
    return std::string(signal_name(signal())) + " ended the run";
  if (is_late())
    return "the time limit of " + std::to_string(*limit_seconds_) +
           " s was over";
  return {};
}

Engine stoppable(Engine engine, const StopSource& stop) {
  const auto refused = [&stop] {
    return Status(StatusCode::kEngineFailure, stop.reason());
  };
  if (engine.run)
    engine.run = [run = std::move(engine.run), &stop,
                  refused](const AttentionCall& call) {
      return stop.stopped() ? refused() : run(call);
    };
  if (engine.append)
    engine.append = [append = std::move(engine.append), &stop,
                     refused](const CacheAppend& call) {
      return stop.stopped() ? refused() : append(call);
    };
  return engine;
}

}  // namespace attnguard
