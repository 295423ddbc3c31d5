// A program as a child process: run to its end, or in the background while its
// output is read.
#ifndef ATTNGUARD_TESTS_SUPPORT_CHILD_PROGRAM_H_
#define ATTNGUARD_TESTS_SUPPORT_CHILD_PROGRAM_H_

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace attnguard {

class ChildProgram {
 public:
  // Starts argv[0] (a path, or a name on the PATH). Its output and errors are
  // one stream. Leak checkers are off in it: it uses libraries that leak.
  explicit ChildProgram(const std::vector<std::string>& argv);

  // Kills it if it still runs.
  ~ChildProgram();
  ChildProgram(const ChildProgram&) = delete;
  ChildProgram& operator=(const ChildProgram&) = delete;

  bool started() const { return pid_ > 0; }

  // Reads on until the output holds the text; false at its end or when the time
  // is over.
  bool wait_for(const std::string& text, std::chrono::seconds most);

  // Reads to the end and waits; the exit code, or 128 + the signal. Kills it
  // when the time is over.
  int finish(std::chrono::seconds most);

  // Asks it to end, then finish().
  int stop(std::chrono::seconds most);

  // What it printed so far.
  const std::string& output() const { return output_; }

 private:
  bool read_more(std::chrono::steady_clock::time_point until);

  pid_t pid_ = -1;
  int pipe_ = -1;
  std::string output_;
};

struct ProgramResult {
  int code = -1;
  std::string output;
};

// Runs a program to its end, for two minutes at most.
ProgramResult run_program(const std::vector<std::string>& argv);

// The body of the answer to GET http://127.0.0.1:port/path; empty on failure.
std::string http_get(int port, const std::string& path);

// A port that was free a moment ago.
int free_port();

}  // namespace attnguard

#endif  // ATTNGUARD_TESTS_SUPPORT_CHILD_PROGRAM_H_
