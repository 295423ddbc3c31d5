#include "ci/isolate/process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

extern char** environ;

namespace attnguard {
namespace {

// A process that died has closed its socket a moment before it can be waited
// for; one that dumps its core takes longer.
constexpr std::chrono::seconds kPatience{10};
constexpr std::chrono::milliseconds kSlice{1};

// Above the descriptors that the worker is given, so that none is overwritten
// before it was copied.
constexpr int kFirstFree = 10;

// What posix_spawn needs, freed at the end.
struct SpawnPlan {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;

  SpawnPlan() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  void describe(int socket, int memory) {
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null",
                                     O_RDONLY, 0);
    // The report on standard output is the guard's alone.
    if (fcntl(STDERR_FILENO, F_GETFD) < 0)
      posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null",
                                       O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, socket, kWorkerSocket);
    posix_spawn_file_actions_adddup2(&files, memory, kWorkerMemory);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  }
};

Status not_started(const std::string& program, const std::string& why) {
  return {StatusCode::kEngineFailure,
          "cannot start the engine's process '" + program + "': " + why +
              "; --no-isolate runs the engine in this process"};
}

// A descriptor out of the way of those that the worker is given.
int moved_up(int fd) {
  if (fd < 0) return fd;
  const int moved = fcntl(fd, F_DUPFD_CLOEXEC, kFirstFree);
  close(fd);
  return moved;
}

void close_all(std::initializer_list<int> fds) {
  for (int fd : fds)
    if (fd >= 0) close(fd);
}

}  // namespace

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::start(
    const std::string& program, const std::string& spec, int threads,
    int memory_fd) {
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return not_started(program,
                       std::string("socketpair: ") + std::strerror(errno));
  const int own = moved_up(ends[0]), its = moved_up(ends[1]);
  const int memory = fcntl(memory_fd, F_DUPFD_CLOEXEC, kFirstFree);
  if (own < 0 || its < 0 || memory < 0) {
    close_all({own, its, memory});
    return not_started(program, "there are no more file descriptors");
  }
  SpawnPlan plan;
  plan.describe(its, memory);
  const std::string count = std::to_string(threads);
  const std::string parent = std::to_string(getpid());
  const char* words[] = {"attnguard",   kWorkerCommand, spec.c_str(),
                         count.c_str(), parent.c_str(), nullptr};
  pid_t pid = -1;
  const int error =
      posix_spawn(&pid, program.c_str(), &plan.files, &plan.attributes,
                  const_cast<char* const*>(words), environ);
  close_all({its, memory});
  if (error != 0) {
    close(own);
    return not_started(program, std::strerror(error));
  }
  return std::unique_ptr<WorkerProcess>(new WorkerProcess(pid, own));
}

WorkerProcess::~WorkerProcess() { end(false); }

bool WorkerProcess::is_alive() const {
  if (ended_) return false;
  siginfo_t info = {};
  return waitid(P_PID, static_cast<id_t>(pid_), &info,
                WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == 0;
}

WorkerProcess::Death WorkerProcess::end(bool wait) {
  Death death;
  if (ended_) return death;
  const auto last = std::chrono::steady_clock::now() + kPatience;
  while (wait && is_alive() && std::chrono::steady_clock::now() < last)
    std::this_thread::sleep_for(kSlice);
  death.by_itself = !is_alive();
  // Before it is waited for: until then no other group has its number.
  kill(-pid_, SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  close(socket_);
  ended_ = true;
  if (WIFSIGNALED(status)) death.signal = WTERMSIG(status);
  if (WIFEXITED(status)) death.exit_code = WEXITSTATUS(status);
  return death;
}

}  // namespace attnguard
