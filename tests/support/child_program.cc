#include "tests/support/child_program.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

extern char** environ;

namespace attnguard {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::string> child_environment() {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (std::string(*entry).rfind("ASAN_OPTIONS=", 0) != 0)
      result.emplace_back(*entry);
  result.emplace_back("ASAN_OPTIONS=detect_leaks=0");
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

ChildProgram::ChildProgram(const std::vector<std::string>& argv) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  std::vector<std::string> arguments = argv;
  std::vector<std::string> environment = child_environment();
  if (posix_spawnp(&pid_, argv[0].c_str(), &actions, nullptr,
                   pointers(arguments).data(),
                   pointers(environment).data()) != 0)
    pid_ = -1;
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  pipe_ = ends[0];
}

ChildProgram::~ChildProgram() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (pipe_ >= 0) close(pipe_);
}

// False at the end of the output, or when the time is over.
bool ChildProgram::read_more(Clock::time_point until) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      until - Clock::now());
  pollfd waiting = {pipe_, POLLIN, 0};
  if (poll(&waiting, 1, static_cast<int>(std::max<long>(left.count(), 0))) <= 0)
    return false;
  char part[4096];
  const ssize_t got = read(pipe_, part, sizeof part);
  if (got <= 0) return false;
  output_.append(part, static_cast<std::size_t>(got));
  return true;
}

bool ChildProgram::wait_for(const std::string& text,
                            std::chrono::seconds most) {
  const Clock::time_point until = Clock::now() + most;
  while (output_.find(text) == output_.npos)
    if (!read_more(until)) return false;
  return true;
}

int ChildProgram::finish(std::chrono::seconds most) {
  if (pid_ <= 0) return -1;
  const Clock::time_point until = Clock::now() + most;
  while (read_more(until)) {
  }
  int status = 0;
  while (waitpid(pid_, &status, WNOHANG) == 0) {
    if (Clock::now() > until) kill(pid_, SIGKILL);
    usleep(2000);
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int ChildProgram::stop(std::chrono::seconds most) {
  if (pid_ > 0) kill(pid_, SIGTERM);
  return finish(most);
}

ProgramResult run_program(const std::vector<std::string>& argv) {
  ChildProgram program(argv);
  ProgramResult result;
  result.code = program.finish(std::chrono::seconds(120));
  result.output = program.output();
  return result;
}

std::string http_get(int port, const std::string& path) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return {};
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (connect(socket, reinterpret_cast<const sockaddr*>(&address),
              sizeof address) == 0) {
    const std::string request =
        "GET " + path +
        " HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    char part[4096];
    if (send(socket, request.data(), request.size(), MSG_NOSIGNAL) ==
        static_cast<ssize_t>(request.size()))
      for (ssize_t got; (got = read(socket, part, sizeof part)) > 0;)
        answer.append(part, static_cast<std::size_t>(got));
  }
  close(socket);
  const std::size_t body = answer.find("\r\n\r\n");
  return body == answer.npos ? std::string() : answer.substr(body + 4);
}

int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  int port = 0;
  if (bind(socket, reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
      getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0)
    port = ntohs(address.sin_port);
  close(socket);
  return port;
}

}  // namespace attnguard
