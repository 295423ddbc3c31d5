// An engine in a process of its own: a crash, an endless loop, exit(), the end
// of memory or a signal is an error of the call that it happened in, and the
// next call starts a new process.
//
// What does not survive a new process is what the engine remembers from call
// to call.
#ifndef ATTNGUARD_CI_ISOLATE_ISOLATED_ENGINE_H_
#define ATTNGUARD_CI_ISOLATE_ISOLATED_ENGINE_H_

#include <chrono>
#include <string>

#include "guard/base/status.h"
#include "guard/engine/engine.h"

namespace attnguard {

struct IsolationOptions {
  // The program that is started; its main() hands over to run_worker.
  std::string program = "/proc/self/exe";

  // Longest time of opening the engine and of each call of it. What takes
  // longer is killed.
  std::chrono::milliseconds timeout{60000};
};

// Opens the engine by its specification in a new process. An error of opening
// is that of the worker's opener, code and message alike; kEngineFailure when
// the process could not be started or did not live through it.
//
// The engine's memory is shared with the process: only tensors that lie there
// can be given to it. Reads and writes past a tensor are told by
// Memory::take_stray_accesses. Not for several threads at once.
Result<Engine> open_isolated(const std::string& spec,
                             const IsolationOptions& options);

}  // namespace attnguard

#endif  // ATTNGUARD_CI_ISOLATE_ISOLATED_ENGINE_H_
