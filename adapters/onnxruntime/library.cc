#include "adapters/onnxruntime/library.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <mutex>
#include <string_view>
#include <system_error>
#include <vector>

#include "adapters/engines_folder.h"
#include "guard/base/text.h"

namespace attnguard::onnxruntime {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kTableVersion = 17;
constexpr int kLogFatal = 4;  // ORT_LOGGING_LEVEL_FATAL
constexpr int kDeviceAllocator = 0;
constexpr int kDefaultMemory = 0;

// struct OrtApiBase.
struct ApiBase {
  const void* (*GetApi)(std::uint32_t version);
  const char* (*GetVersionString)();
};

Status not_found(std::string message) {
  return {StatusCode::kNotFound, "onnxruntime: " + std::move(message)};
}

// "1.9.1" before "1.30.0".
std::vector<std::int64_t> numbers_of(std::string_view version) {
  std::vector<std::int64_t> numbers;
  for (std::string_view piece : split(version, '.'))
    numbers.push_back(parse_int(piece).value_or(-1));
  return numbers;
}

constexpr std::string_view kFolderPrefix = "onnxruntime-";

// The fetched versions, the newest first.
std::vector<std::string> fetched_versions() {
  std::vector<std::string> versions;
  std::error_code error;
  for (fs::directory_iterator it(engines_folder().path, error), end;
       !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with(kFolderPrefix))
      versions.push_back(name.substr(kFolderPrefix.size()));
  }
  std::sort(versions.begin(), versions.end(),
            [](const std::string& a, const std::string& b) {
              return numbers_of(a) > numbers_of(b);
            });
  return versions;
}

std::string fetched_folder(const std::string& version) {
  return engines_folder().path + "/" + std::string(kFolderPrefix) + version +
         "/lib";
}

// libonnxruntime.so or the name with a version behind it; empty: none.
std::string library_in(const fs::path& folder) {
  std::error_code error;
  std::string best;
  for (fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error))
    if (it->path().filename().string().starts_with("libonnxruntime.so"))
      best = std::max(best, it->path().string());
  return best;
}

// The file that the user's words or the defaults point to. What was named is
// all that is looked at: another release would be another kernel.
Result<std::string> find_file(const std::string& path,
                              const std::string& version) {
  std::error_code error;
  std::string named = path;
  if (named.empty() && version.empty())
    named = environment("ATTNGUARD_ONNXRUNTIME_PATH");
  if (!named.empty()) {
    if (fs::is_regular_file(named, error)) return named;
    for (std::string_view below : {"", "/lib"})
      if (std::string file = library_in(named + std::string(below));
          !file.empty())
        return file;
    return not_found("no libonnxruntime.so in '" + named +
                     "'; path= names the file or its folder");
  }
  const std::vector<std::string> fetched = fetched_versions();
  if (version.empty() && !fetched.empty())
    if (std::string file = library_in(fetched_folder(fetched.front()));
        !file.empty())
      return file;
  if (!version.empty()) {
    if (std::string file = library_in(fetched_folder(version)); !file.empty())
      return file;
    std::string have;
    for (const std::string& one : fetched)
      have += (have.empty() ? "; there is " : ", ") + one;
    return not_found("version=" + version + " is not in " +
                     engines_folder().path + have);
  }
  return not_found(
      "not found: looked in " + engines_folder().path +
      "/onnxruntime-*/lib\nfetch it with ci/fetch_engines.sh, or name a "
      "library with path= or ATTNGUARD_ONNXRUNTIME_PATH");
}

template <typename Function>
void take(const void* const* table, std::size_t slot, Function*& function) {
  function = reinterpret_cast<Function*>(const_cast<void*>(table[slot]));
}

Functions functions_of(const void* api) {
  const auto* table = static_cast<const void* const*>(api);
  Functions call = {};
  take(table, 2, call.GetErrorMessage);
  take(table, 3, call.CreateEnv);
  take(table, 7, call.CreateSession);
  take(table, 8, call.CreateSessionFromArray);
  take(table, 9, call.Run);
  take(table, 10, call.CreateSessionOptions);
  take(table, 23, call.SetSessionGraphOptimizationLevel);
  take(table, 24, call.SetIntraOpNumThreads);
  take(table, 30, call.SessionGetInputCount);
  take(table, 31, call.SessionGetOutputCount);
  take(table, 33, call.SessionGetInputTypeInfo);
  take(table, 34, call.SessionGetOutputTypeInfo);
  take(table, 36, call.SessionGetInputName);
  take(table, 37, call.SessionGetOutputName);
  take(table, 49, call.CreateTensorWithDataAsOrtValue);
  take(table, 50, call.IsTensor);
  take(table, 51, call.GetTensorMutableData);
  take(table, 55, call.CastTypeInfoToTensorInfo);
  take(table, 60, call.GetTensorElementType);
  take(table, 61, call.GetDimensionsCount);
  take(table, 62, call.GetDimensions);
  take(table, 63, call.GetSymbolicDimensions);
  take(table, 65, call.GetTensorTypeAndShape);
  take(table, 69, call.CreateCpuMemoryInfo);
  take(table, 76, call.AllocatorFree);
  take(table, 78, call.GetAllocatorWithDefaultOptions);
  take(table, 92, call.ReleaseEnv);
  take(table, 93, call.ReleaseStatus);
  take(table, 94, call.ReleaseMemoryInfo);
  take(table, 95, call.ReleaseSession);
  take(table, 96, call.ReleaseValue);
  take(table, 98, call.ReleaseTypeInfo);
  take(table, 99, call.ReleaseTensorTypeAndShapeInfo);
  take(table, 100, call.ReleaseSessionOptions);
  return call;
}

Result<std::shared_ptr<const Library>> open_library(const std::string& file) {
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    return not_found("cannot load " + file + ": " +
                     (reason ? reason : "unknown error"));
  }
  using GetBase = const ApiBase* (*)();
  const auto get_base =
      reinterpret_cast<GetBase>(dlsym(handle, "OrtGetApiBase"));
  if (get_base == nullptr)
    return not_found(file + " has no OrtGetApiBase: it is no ONNX Runtime");
  auto library = std::make_shared<Library>();
  library->file = file;
  library->version = get_base()->GetVersionString();
  const void* api = get_base()->GetApi(kTableVersion);
  if (api == nullptr)
    return not_found("ONNX Runtime " + library->version + " in " + file +
                     " is too old; 1.17 or later is needed");
  library->call = functions_of(api);
  // A library does not print, and neither may the one behind it.
  Status status = library->status(
      library->call.CreateEnv(kLogFatal, "attnguard", &library->env),
      "CreateEnv");
  if (status.ok())
    status =
        library->status(library->call.CreateCpuMemoryInfo(
                            kDeviceAllocator, kDefaultMemory, &library->memory),
                        "CreateCpuMemoryInfo");
  if (!status.ok()) return status;
  return std::shared_ptr<const Library>(std::move(library));
}

}  // namespace

Status Library::status(OrtStatus* status, const std::string& what) const {
  if (status == nullptr) return ok_status();
  const std::string message = call.GetErrorMessage(status);
  call.ReleaseStatus(status);
  return {StatusCode::kEngineFailure,
          "ONNX Runtime " + version + ", " + what + ": " + message};
}

Result<std::shared_ptr<const Library>> load_library(
    const std::string& path, const std::string& version) {
  static std::mutex mutex;
  // Never destroyed, as what it holds is never released.
  static auto& loaded =
      *new std::map<std::string, std::shared_ptr<const Library>>;

  const Result<std::string> found = find_file(path, version);
  if (!found.ok()) return found.status();
  std::error_code error;
  const fs::path real = fs::canonical(found.value(), error);
  const std::string file = error ? found.value() : real.string();

  const std::lock_guard<std::mutex> lock(mutex);
  if (const auto known = loaded.find(file); known != loaded.end())
    return known->second;
  Result<std::shared_ptr<const Library>> opened = open_library(file);
  if (opened.ok()) loaded[file] = opened.value();
  return opened;
}

}  // namespace attnguard::onnxruntime
