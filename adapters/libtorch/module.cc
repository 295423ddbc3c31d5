#include "adapters/libtorch/module.h"

#include <dlfcn.h>

#include <cstring>
#include <filesystem>
#include <system_error>

namespace attnguard::libtorch {
namespace {

namespace fs = std::filesystem;

std::string default_path() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return (program.parent_path() / ATTNGUARD_LIBTORCH_MODULE)
      .lexically_normal()
      .string();
}

std::string loader_error() {
  const char* error = dlerror();
  return error != nullptr ? error : "the loader does not say why";
}

Status not_found(const std::string& file, const std::string& reason) {
  return {StatusCode::kNotFound,
          "libtorch: cannot load " + file + ": " + reason +
              "; install LibTorch (Debian: libtorch-dev) and build attnguard "
              "with -DATTNGUARD_WITH_LIBTORCH=ON, or name the module with "
              "path="};
}

// The module's table of the name.
template <typename Table>
Result<const Table*> load_table(const std::string& path,
                                const char* symbol_name,
                                std::size_t call_size) {
  const std::string file = path.empty() ? default_path() : path;
  std::error_code error;
  if (!fs::is_regular_file(file, error))
    return not_found("'" + file + "'", "there is no such file");
  // Its own folder, not the loader's.
  const std::string name = file.find('/') == file.npos ? "./" + file : file;
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return not_found("'" + file + "'", loader_error());
  void* symbol = dlsym(handle, symbol_name);
  if (symbol == nullptr)
    return invalid_argument("libtorch: '" + file + "' does not export " +
                            symbol_name +
                            ": path= names attnguard's module, not LibTorch");
  const Table* (*get)() = nullptr;
  static_assert(sizeof get == sizeof symbol);
  std::memcpy(&get, &symbol, sizeof get);
  const Table* table = get();
  if (table->call_size != call_size)
    return invalid_argument("libtorch: '" + file +
                            "' was built with another attnguard; build both "
                            "together");
  return table;
}

}  // namespace

Result<const Kernel*> load_kernel(const std::string& path) {
  return load_table<Kernel>(path, kKernelSymbol, sizeof(SdpaCall));
}

Result<const Recorder*> load_recorder(const std::string& path) {
  return load_table<Recorder>(path, kRecorderSymbol, sizeof(SeenCall));
}

}  // namespace attnguard::libtorch
