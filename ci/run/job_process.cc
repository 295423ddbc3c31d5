#include "ci/run/job_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
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

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{5};
constexpr std::chrono::milliseconds kSlice{2};

// Above the descriptor that the process is given.
constexpr int kFirstFree = 10;

Status not_started(const std::string& program, const std::string& why) {
  return {StatusCode::kEngineFailure, "cannot start the process '" + program +
                                          "' of --jobs: " + why +
                                          "; leave out --jobs"};
}

int moved_up(int fd) {
  if (fd < 0) return fd;
  const int moved = fcntl(fd, F_DUPFD_CLOEXEC, kFirstFree);
  close(fd);
  return moved;
}

int spawn(const std::string& program, const std::vector<std::string>& words,
          int socket, pid_t& pid) {
  std::vector<char*> argv;
  for (const std::string& word : words)
    argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY,
                                   0);
  posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, socket, kJobSocket);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const int error = posix_spawn(&pid, program.c_str(), &files, &attributes,
                                argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  return error;
}

}  // namespace

Result<std::unique_ptr<JobProcess>> JobProcess::start(
    const std::string& program, const std::vector<std::string>& words) {
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return not_started(program, std::strerror(errno));
  const int own = moved_up(ends[0]), its = moved_up(ends[1]);
  std::vector<std::string> line = {"attnguard", kJobCommand,
                                   std::to_string(getpid())};
  line.insert(line.end(), words.begin(), words.end());
  pid_t pid = -1;
  const int error =
      own < 0 || its < 0 ? EMFILE : spawn(program, line, its, pid);
  if (its >= 0) close(its);
  if (error == 0) return std::unique_ptr<JobProcess>(new JobProcess(pid, own));
  if (own >= 0) close(own);
  return not_started(program, std::strerror(error));
}

JobProcess::~JobProcess() { end(); }

bool JobProcess::is_alive() const {
  if (ended_) return false;
  siginfo_t info = {};
  return waitid(P_PID, static_cast<id_t>(pid_), &info,
                WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == 0;
}

void JobProcess::finish() {
  shutdown(socket_, SHUT_WR);
  const auto last = Clock::now() + kPatience;
  while (is_alive() && Clock::now() < last) std::this_thread::sleep_for(kSlice);
  end();
}

std::string JobProcess::end() {
  if (ended_) return {};
  const bool by_itself = !is_alive();
  kill(-pid_, SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  close(socket_);
  ended_ = true;
  if (!by_itself) return "was ended";
  if (WIFSIGNALED(status))
    return "died of signal " + std::to_string(WTERMSIG(status)) + " (" +
           strsignal(WTERMSIG(status)) + ")";
  return "ended with exit code " + std::to_string(WEXITSTATUS(status));
}

OrphanReaper::OrphanReaper() {
  prctl(PR_GET_CHILD_SUBREAPER, &before_);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

OrphanReaper::~OrphanReaper() {
  const auto last = Clock::now() + kPatience;
  // -1 and ECHILD: none is left.
  for (pid_t pid = 0; pid >= 0 && Clock::now() < last;) {
    pid = waitpid(-1, nullptr, WNOHANG);
    if (pid == 0) std::this_thread::sleep_for(kSlice);
  }
  prctl(PR_SET_CHILD_SUBREAPER, before_);
}

}  // namespace attnguard
