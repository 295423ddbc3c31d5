// A folder of a test's own, removed with all that is in it.
#ifndef ATTNGUARD_TESTS_SUPPORT_TEMP_FOLDER_H_
#define ATTNGUARD_TESTS_SUPPORT_TEMP_FOLDER_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace attnguard {

class TempFolder {
 public:
  TempFolder() {
    std::string name = testing::TempDir() + "attnguard-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

  // Returns the path; folders on the way are made.
  std::string write(const std::string& name, std::string_view text) const {
    std::filesystem::create_directories(
        std::filesystem::path(file(name)).parent_path());
    std::ofstream(file(name), std::ios::binary) << text;
    return file(name);
  }

  std::string read(const std::string& name) const {
    std::ifstream in(file(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  std::string path_;
};

}  // namespace attnguard

#endif  // ATTNGUARD_TESTS_SUPPORT_TEMP_FOLDER_H_
