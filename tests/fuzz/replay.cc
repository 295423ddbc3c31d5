// Runs a fuzz target on stored inputs, in builds that have no libFuzzer.
//
//   fuzz_NAME PATH...      files, and folders of files
//
// Exit code 0: each ran and none crashed. 4: there was none. 2: one could not
// be read.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/target.h"

namespace fs = std::filesystem;

int main(int argc, char** argv) {
  std::vector<fs::path> files;
  for (int n = 1; n < argc; ++n) {
    const fs::path path = argv[n];
    if (!fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    for (const auto& entry : fs::recursive_directory_iterator(path))
      if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& path : files) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
      std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
      return 2;
    }
    const std::string bytes(std::istreambuf_iterator<char>(file), {});
    // An exact copy on the heap, so that a sanitizer sees reads behind it.
    const std::vector<std::uint8_t> input(bytes.begin(), bytes.end());
    std::fprintf(stderr, "%s\n", path.c_str());
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  std::fprintf(stderr, "%zu inputs ran\n", files.size());
  return files.empty() ? 4 : 0;
}
