#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string_view>

#include "ci/adapter_table.h"
#include "ci/cli.h"
#include "ci/isolate/worker.h"
#include "ci/run/job_process.h"
#include "ci/run/job_worker.h"

namespace {

// https://no-color.org: set and not empty.
bool color_is_unwanted() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return (no_color != nullptr && *no_color != '\0') ||
         (terminal != nullptr && std::string_view(terminal) == "dumb");
}

// The other process of `check --jobs`.
int run_job_worker(int argc, char** argv,
                   attnguard::Surroundings surroundings) {
  const std::vector<const char*> words = attnguard::job_words(argc, argv);
  surroundings.job_socket = attnguard::own_job_socket();
  if (words.empty() || surroundings.job_socket < 0) {
    std::cerr << "attnguard: error: 'attnguard check' starts this command\n";
    return attnguard::kExitUsage;
  }
  return attnguard::run_command(static_cast<int>(words.size()), words.data(),
                                std::cout, std::cerr, surroundings);
}

// False while a command runs. An engine in this process that calls exit() would
// else decide on the exit code, and 0 would pass for a pass.
bool command_is_over = true;

void judge_exit() {
  if (command_is_over) return;
  std::cout.flush();
  std::cerr << "attnguard: error: the engine ended the process, with exit() or "
               "the like; without --no-isolate the report says on which "
               "problem\n";
  _exit(attnguard::kExitEngineError);
}

}  // namespace

int main(int argc, char** argv) {
  if (attnguard::is_worker(argc, argv))
    return attnguard::run_worker(argc, argv, attnguard::open_engine);
  attnguard::Surroundings surroundings;
  surroundings.worker = "/proc/self/exe";  // this file, even if it is replaced
  surroundings.folder = ".";
  if (attnguard::is_job_worker(argc, argv))
    return run_job_worker(argc, argv, surroundings);
  surroundings.catch_signals = true;
  surroundings.out_is_terminal = isatty(STDOUT_FILENO) == 1;
  surroundings.err_is_terminal = isatty(STDERR_FILENO) == 1;
  surroundings.no_color = color_is_unwanted();
  if (const char* summary = std::getenv("GITHUB_STEP_SUMMARY"))
    surroundings.job_summary = summary;
  std::atexit(judge_exit);
  command_is_over = false;
  const int code =
      attnguard::run_command(argc, argv, std::cout, std::cerr, surroundings);
  command_is_over = true;
  return code;
}
