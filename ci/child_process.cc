#include "ci/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>

namespace attnguard {
namespace {

constexpr std::size_t kMostErr = 64 * 1024;

struct Pipe {
  int read_end = -1, write_end = -1;

  bool open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    read_end = ends[0];
    write_end = ends[1];
    return true;
  }
  void close_write() {
    if (write_end >= 0) close(write_end);
    write_end = -1;
  }
  ~Pipe() {
    close_write();
    if (read_end >= 0) close(read_end);
  }
};

void write_all(int descriptor, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written =
        write(descriptor, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    done += static_cast<std::size_t>(written);
  }
}

[[noreturn]] void run_body(
    const std::function<int(std::ostream& out, std::ostream& err)>& body,
    int out, int err, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(EXIT_FAILURE);
  // ggml would start a debugger on this process to print where it aborted.
  setenv("GGML_NO_BACKTRACE", "1", 0);
  // What libraries print must not get into a report on standard output.
  dup2(err, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  std::ostringstream report;
  const int code = body(report, std::cerr);
  std::cerr.flush();
  write_all(out, report.str());
  // Not exit(): libraries whose threads still run may hang or crash in it.
  _exit(code);
}

// Appends what there is to read; false at the end of the pipe.
bool read_some(int descriptor, std::string& text, std::size_t most) {
  std::array<char, 65536> bytes;
  const ssize_t count = read(descriptor, bytes.data(), bytes.size());
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  text.append(bytes.data(), static_cast<std::size_t>(count));
  if (text.size() > most) text.erase(0, text.size() - most);
  return count > 0;
}

// Reads both pipes to their ends; false when the time is over.
bool collect(int out, int err, std::chrono::steady_clock::time_point deadline,
             ChildResult& result) {
  std::array<pollfd, 2> pipes = {{{out, POLLIN, 0}, {err, POLLIN, 0}}};
  while (pipes[0].fd >= 0 || pipes[1].fd >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    const int wait = static_cast<int>(std::min<std::int64_t>(
        left.count(),
        std::chrono::milliseconds(std::chrono::hours(1)).count()));
    const int ready = poll(pipes.data(), pipes.size(), wait);
    if (ready < 0 && errno != EINTR) return true;
    if (ready <= 0) continue;
    if (pipes[0].revents && !read_some(out, result.out, std::string::npos))
      pipes[0].fd = -1;
    if (pipes[1].revents && !read_some(err, result.err, kMostErr))
      pipes[1].fd = -1;
  }
  return true;
}

// Whether the child ends before the deadline; it stays to be waited for.
bool ends_in_time(pid_t child, std::chrono::steady_clock::time_point deadline) {
  constexpr int kSliceMilliseconds = 10;
  for (;;) {
    siginfo_t info = {};
    const int waited = waitid(P_PID, static_cast<id_t>(child), &info,
                              WEXITED | WNOWAIT | WNOHANG);
    if (waited < 0 && errno != EINTR) return true;
    if (waited == 0 && info.si_pid == child) return true;
    if (std::chrono::steady_clock::now() >= deadline) return false;
    poll(nullptr, 0, kSliceMilliseconds);
  }
}

// The last line that is not empty.
std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  if (end == std::string::npos) return {};
  const std::size_t before = text.rfind('\n', end);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  return text.substr(begin, end + 1 - begin);
}

}  // namespace

std::string ChildResult::what_happened() const {
  std::string text;
  if (timed_out)
    text = "did not end in time and was stopped";
  else if (signal != 0)
    text = "crashed with signal " + std::to_string(signal) + " (" +
           strsignal(signal) + ")";
  else
    text = "ended with exit code " + std::to_string(exit_code);
  const std::string said = last_line(err);
  return said.empty() ? text : text + ": " + said;
}

Result<ChildResult> run_in_child(
    const std::function<int(std::ostream& out, std::ostream& err)>& body,
    std::chrono::seconds timeout) {
  Pipe out, err;
  if (!out.open() || !err.open())
    return Status(StatusCode::kEngineFailure,
                  std::string("cannot make a pipe: ") + std::strerror(errno));
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0)
    return Status(
        StatusCode::kEngineFailure,
        std::string("cannot start a process: ") + std::strerror(errno));
  if (child == 0) run_body(body, out.write_end, err.write_end, parent);
  out.close_write();
  err.close_write();
  ChildResult result;
  result.timed_out = !collect(out.read_end, err.read_end, deadline, result);
  // A child that closed its pipes may go on.
  if (!result.timed_out) result.timed_out = !ends_in_time(child, deadline);
  kill(child, SIGKILL);
  kill(-child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status) && !result.timed_out)
    result.signal = WTERMSIG(status);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  return result;
}

}  // namespace attnguard
