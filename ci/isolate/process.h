// A process that runs one engine.
#ifndef ATTNGUARD_CI_ISOLATE_PROCESS_H_
#define ATTNGUARD_CI_ISOLATE_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>

#include "guard/base/status.h"

namespace attnguard {

// The first word of its command line.
inline constexpr char kWorkerCommand[] = "engine-worker";

// How it ends when it cannot answer: its engine has closed the socket.
inline constexpr int kExitConnectionLost = 113;

// Descriptors that it is started with.
inline constexpr int kWorkerSocket = 3;
inline constexpr int kWorkerMemory = 4;

// It has a process group of its own, nothing on its standard input, and writes
// to this process' standard error. It ends with its process group when this
// object does, and with this process however that ends.
class WorkerProcess {
 public:
  // Starts `program engine-worker SPEC THREADS PARENT`: never a bare fork,
  // after which the threads of OpenMP would be missing. kEngineFailure says
  // why it could not be started.
  static Result<std::unique_ptr<WorkerProcess>> start(
      const std::string& program, const std::string& spec, int threads,
      int memory_fd);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  int socket() const { return socket_; }
  pid_t pid() const { return pid_; }
  bool is_alive() const;

  struct Death {
    bool by_itself = false;  // Not by end().
    int signal = 0;          // Or 0, and then
    int exit_code = 0;
  };

  // Waits a moment for a process that has closed its socket to end by itself,
  // kills what is left of its group, and leaves no zombie.
  Death end(bool wait);

 private:
  WorkerProcess(pid_t pid, int socket) : pid_(pid), socket_(socket) {}

  pid_t pid_;
  int socket_;
  bool ended_ = false;
};

}  // namespace attnguard

#endif  // ATTNGUARD_CI_ISOLATE_PROCESS_H_
