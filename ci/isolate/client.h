// Asks the engine's process, and starts a new one where there is none.
#ifndef ATTNGUARD_CI_ISOLATE_CLIENT_H_
#define ATTNGUARD_CI_ISOLATE_CLIENT_H_

#include <memory>
#include <string>
#include <vector>

#include "ci/isolate/isolated_engine.h"
#include "ci/isolate/messages.h"
#include "ci/isolate/process.h"
#include "ci/isolate/shared_memory.h"
#include "ci/isolate/wire.h"

namespace attnguard {

class EngineClient {
 public:
  EngineClient(std::string spec, const IsolationOptions& options,
               std::shared_ptr<SharedMemory> memory)
      : spec_(std::move(spec)), options_(options), memory_(std::move(memory)) {}

  // Starts the process, opens the engine in it, and hears what it is.
  Status start(Hello& hello);

  // Asks about the problem and waits for the answer. kEngineFailure says what
  // ran and how the process ended; the next exchange starts a new one.
  Result<Reply> exchange(Request& request, const Problem& problem);

 private:
  Deadline deadline() const {
    return std::chrono::steady_clock::now() + options_.timeout;
  }
  Status name_problem(Request& request, const Problem& problem);
  Transfer receive(std::string& bytes);

  // Ends the process and says how it came to that.
  Status lost(Transfer transfer, const std::string& doing);
  std::string cause_of(const WorkerProcess::Death& death) const;

  std::string spec_;
  IsolationOptions options_;
  std::shared_ptr<SharedMemory> memory_;
  std::unique_ptr<WorkerProcess> process_;

  // Those that the process knows, by number; the oldest makes room.
  std::vector<Problem> problems_;
  std::size_t next_problem_ = 0;
};

}  // namespace attnguard

#endif  // ATTNGUARD_CI_ISOLATE_CLIENT_H_
