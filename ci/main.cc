#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string_view>

#include "ci/adapter_table.h"
#include "ci/cli.h"
#include "ci/isolate/worker.h"

namespace {

// https://no-color.org: set and not empty.
bool color_is_unwanted() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return (no_color != nullptr && *no_color != '\0') ||
         (terminal != nullptr && std::string_view(terminal) == "dumb");
}

}  // namespace

int main(int argc, char** argv) {
  if (attnguard::is_worker(argc, argv))
    return attnguard::run_worker(argc, argv, attnguard::open_engine);
  attnguard::Surroundings surroundings;
  surroundings.out_is_terminal = isatty(STDOUT_FILENO) == 1;
  surroundings.err_is_terminal = isatty(STDERR_FILENO) == 1;
  surroundings.no_color = color_is_unwanted();
  surroundings.worker = "/proc/self/exe";  // this file, even if it is replaced
  surroundings.folder = ".";
  return attnguard::run_command(argc, argv, std::cout, std::cerr, surroundings);
}
