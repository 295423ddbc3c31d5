// Other programs in tests: what they print, and how they end.
#ifndef ATTNGUARD_TESTS_SUPPORT_PROGRAM_H_
#define ATTNGUARD_TESTS_SUPPORT_PROGRAM_H_

#include <stdlib.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "guard/base/text.h"

namespace attnguard {

struct ProgramOutcome {
  int code = -1;       // 127: there is no such program.
  std::string output;  // Standard output and error.
};

// Runs a line of the shell; give words through shell_quote().
inline ProgramOutcome run_program(const std::string& line) {
  ProgramOutcome outcome;
  FILE* pipe = ::popen(("{ " + line + "\n} 2>&1 </dev/null").c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> part;
  for (std::size_t size;
       (size = std::fread(part.data(), 1, part.size(), pipe)) > 0;)
    outcome.output.append(part.data(), size);
  const int status = ::pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return outcome;
}

// A folder of the test's own, removed with all that is in it.
class TestFolder {
 public:
  TestFolder() {
    std::string name =
        (std::filesystem::temp_directory_path() / "attnguard-test-XXXXXX")
            .string();
    path_ = ::mkdtemp(name.data());
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name), std::ios::binary) << text;
    return file(name);
  }
  std::string read(const std::string& name) const {
    std::ifstream stream(file(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

 private:
  std::string path_;
};

}  // namespace attnguard

#endif  // ATTNGUARD_TESTS_SUPPORT_PROGRAM_H_
