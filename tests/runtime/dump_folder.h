// What tests of dumps share: a folder that goes with the test, and a log.
#ifndef ATTNGUARD_TESTS_RUNTIME_DUMP_FOLDER_H_
#define ATTNGUARD_TESTS_RUNTIME_DUMP_FOLDER_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "guard/runtime/dump_writer.h"

namespace attnguard {

inline constexpr std::chrono::seconds kLong{30};

// A new folder that goes with the test.
class DumpFolder {
 public:
  DumpFolder() {
    std::string name = testing::TempDir() + "attnguard-dump-XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~DumpFolder() { std::filesystem::remove_all(path_); }
  DumpFolder(const DumpFolder&) = delete;
  DumpFolder& operator=(const DumpFolder&) = delete;

  const std::string& path() const { return path_; }
  std::vector<std::string> files() const {
    std::vector<std::string> files;
    if (std::filesystem::is_directory(path_))
      for (const auto& entry : std::filesystem::directory_iterator(path_))
        files.push_back(entry.path().string());
    std::sort(files.begin(), files.end());
    return files;
  }

 private:
  std::string path_;
};

class HeardLog {
 public:
  LogFunction function() {
    return [this](std::string_view line) {
      const std::lock_guard lock(mutex_);
      lines_.emplace_back(line);
    };
  }
  std::vector<std::string> lines() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

inline DumpSettings settings_of(const DumpFolder& folder) {
  return {.folder = folder.path(), .max_bytes = 1 << 20, .max_files = 10};
}

}  // namespace attnguard

#endif  // ATTNGUARD_TESTS_RUNTIME_DUMP_FOLDER_H_
