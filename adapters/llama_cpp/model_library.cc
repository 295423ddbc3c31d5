#include "adapters/llama_cpp/model_library.h"

#include <dlfcn.h>

#include <deque>
#include <memory>
#include <mutex>

#include "adapters/llama_cpp/library.h"

namespace attnguard::llama {
namespace {

constexpr std::size_t kMostLines = 4;
constexpr int kWarning = 3;       // GGML_LOG_LEVEL_WARN; errors are 4,
constexpr int kContinuation = 5;  // GGML_LOG_LEVEL_CONT

struct Log {
  std::mutex mutex;
  std::deque<std::string> lines;
  bool keeping = false;  // Whether the last line was kept.
};

Log& log() {
  static Log one;
  return one;
}

}  // namespace

Result<Library> load_library(const std::string& path) {
  // Brings ggml and the backend for this CPU into the process first: libllama
  // then finds them under their names.
  const Result<std::shared_ptr<const ggml::Library>> ggml =
      ggml::load_library(path);
  if (!ggml.ok()) return ggml.status();
  const std::string& folder = ggml.value()->folder;
  const std::string file = ggml::find_shared_library(folder, "llama");
  if (file.empty())
    return Status(StatusCode::kNotFound,
                  "llama.cpp: " + folder + " holds ggml and no libllama.so");
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle) return Library{handle, file};
  const char* reason = dlerror();
  return Status(StatusCode::kNotFound, "llama.cpp: cannot load " + file + ": " +
                                           (reason ? reason : "unknown error"));
}

void keep_message(int level, const char* text, void*) {
  const std::lock_guard<std::mutex> lock(log().mutex);
  std::deque<std::string>& lines = log().lines;
  if (level == kContinuation) {
    if (log().keeping && !lines.empty()) lines.back() += text;
    return;
  }
  log().keeping = level >= kWarning;
  if (!log().keeping) return;
  lines.emplace_back(text);
  if (lines.size() > kMostLines) lines.pop_front();
}

void forget_messages() {
  const std::lock_guard<std::mutex> lock(log().mutex);
  log().lines.clear();
}

std::string messages() {
  const std::lock_guard<std::mutex> lock(log().mutex);
  std::string out;
  for (const std::string& line : log().lines) {
    const std::size_t end = line.find_last_not_of(" \t\r\n");
    if (end == std::string::npos) continue;
    out +=
        (out.empty() ? "; llama.cpp says: " : " | ") + line.substr(0, end + 1);
  }
  return out;
}

}  // namespace attnguard::llama
