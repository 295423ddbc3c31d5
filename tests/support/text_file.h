// Text files in tests, and texts by lines.
#ifndef ATTNGUARD_TESTS_SUPPORT_TEXT_FILE_H_
#define ATTNGUARD_TESTS_SUPPORT_TEXT_FILE_H_

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace attnguard {

// The whole file; fails the test where there is none.
inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The source file of a defect or fault, by its kebab-case name.
inline std::string source_file_of(std::string_view id) {
  std::string file(id);
  for (char& c : file)
    if (c == '-') c = '_';
  return file + ".cc";
}

}  // namespace attnguard

#endif  // ATTNGUARD_TESTS_SUPPORT_TEXT_FILE_H_
