// The process that runs one engine for `attnguard check`.
#ifndef ATTNGUARD_CI_ISOLATE_WORKER_H_
#define ATTNGUARD_CI_ISOLATE_WORKER_H_

#include <functional>
#include <string>

#include "guard/base/status.h"
#include "guard/engine/engine.h"

namespace attnguard {

using EngineOpener = std::function<Result<Engine>(const std::string& spec)>;

// Whether this is the command line of a worker: main() hands it to run_worker
// before it looks at anything else.
bool is_worker(int argc, const char* const* argv);

// Opens the engine and answers for it until the other process has gone. The
// exit code is that of the process.
int run_worker(int argc, const char* const* argv, const EngineOpener& open);

}  // namespace attnguard

#endif  // ATTNGUARD_CI_ISOLATE_WORKER_H_
