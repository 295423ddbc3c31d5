// What the tests of isolation share: engines that fail on purpose, and what
// is left of their processes.
#ifndef ATTNGUARD_TESTS_CI_ISOLATE_ISOLATION_TESTING_H_
#define ATTNGUARD_TESTS_CI_ISOLATE_ISOLATION_TESTING_H_

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "ci/isolate/isolated_engine.h"
#include "guard/finding/result.h"
#include "tests/support/engines.h"

namespace attnguard {

inline Engine isolated(const std::string& spec, const std::string& program,
                       std::chrono::milliseconds timeout) {
  Result<Engine> engine = open_isolated(spec, {program, timeout});
  EXPECT_TRUE(engine.ok()) << engine.status().message();
  return engine.ok() ? engine.value() : Engine{};
}

// "7=crash": see fault_worker.cc.
inline Engine faulty(
    const std::string& faults,
    std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
  return isolated("fault:engine," + faults, ATTNGUARD_FAULT_WORKER, timeout);
}

// The number of the process in the fields of /proc/PID/stat, which stand
// behind the name in parentheses: 1 is its parent.
inline std::vector<pid_t> children() {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream stream(entry.path() / "stat");
    const std::string line{std::istreambuf_iterator<char>(stream), {}};
    const std::size_t end = line.rfind(')');
    if (end == std::string::npos) continue;
    if (std::atoi(line.c_str() + end + 4) == getpid())
      found.push_back(std::atoi(name.c_str()));
  }
  return found;
}

// Gone, or dead and not yet waited for by whoever has it now.
inline bool is_gone(pid_t pid) {
  std::ifstream stream("/proc/" + std::to_string(pid) + "/stat");
  const std::string line{std::istreambuf_iterator<char>(stream), {}};
  const std::size_t end = line.rfind(')');
  return end == std::string::npos || line[end + 2] == 'Z';
}

inline bool soon_gone(pid_t pid) {
  for (int tries = 0; tries < 500 && !is_gone(pid); ++tries) usleep(10000);
  return is_gone(pid);
}

}  // namespace attnguard

#endif  // ATTNGUARD_TESTS_CI_ISOLATE_ISOLATION_TESTING_H_
