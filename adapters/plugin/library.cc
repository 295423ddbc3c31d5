#include "adapters/plugin/library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

namespace attnguard::plugin {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSymbol = "attnguard_plugin_get";
constexpr std::uint32_t kRequiredSize =
    offsetof(attnguard_plugin, run) + sizeof(attnguard_plugin::run);

// No table ever gets near: what is larger was never set.
constexpr std::uint32_t kImplausibleSize = 1 << 16;

std::string loader_error() {
  const char* error = dlerror();
  return error != nullptr ? error : "the loader does not say why";
}

// What the loader would find only in its own folders lies in this one.
std::string with_folder(const std::string& path) {
  return path.find('/') == std::string::npos ? "./" + path : path;
}

Status check_file(const std::string& path) {
  std::error_code error;
  const fs::file_status file = fs::status(with_folder(path), error);
  if (file.type() == fs::file_type::not_found) {
    const fs::path here = fs::current_path(error);
    return {StatusCode::kNotFound,
            "plugin '" + path + "': no such file" +
                (path.starts_with('/') ? "" : " below " + here.string()) +
                "; write plugin:PATH of a shared library"};
  }
  if (file.type() == fs::file_type::directory)
    return invalid_argument("plugin '" + path +
                            "' is a folder; name the shared library in it");
  if (file.type() != fs::file_type::regular)
    return invalid_argument("plugin '" + path + "' cannot be read" +
                            (error ? ": " + error.message() : ""));
  return ok_status();
}

using Get = const attnguard_plugin* (*)(std::uint32_t);

Result<const attnguard_plugin*> get_table(void* handle) {
  void* symbol = dlsym(handle, kSymbol);
  if (symbol == nullptr)
    return invalid_argument(
        std::string("it does not export ") + kSymbol +
        "; define it as in attnguard_plugin.h (in C++: extern \"C\"), visible");
  Get get = nullptr;
  static_assert(sizeof get == sizeof symbol);
  std::memcpy(&get, &symbol, sizeof get);
  try {
    return get(ATTNGUARD_PLUGIN_ABI_VERSION);
  } catch (...) {
    return invalid_argument(std::string(kSymbol) + "() threw an exception");
  }
}

Status check_required(const attnguard_plugin& call) {
  const std::pair<const char*, bool> required[] = {
      {"create", call.create != nullptr},
      {"destroy", call.destroy != nullptr},
      {"describe", call.describe != nullptr},
      {"run", call.run != nullptr},
  };
  for (const auto& [name, there] : required)
    if (!there)
      return invalid_argument(std::string("the function ") + name +
                              " of its table is NULL; it is required");
  return ok_status();
}

Status check_memory(const attnguard_plugin& call) {
  const std::pair<const char*, bool> functions[] = {
      {"allocate", call.allocate != nullptr},
      {"release", call.release != nullptr},
      {"copy_in", call.copy_in != nullptr},
      {"copy_out", call.copy_out != nullptr},
  };
  std::string there, missing;
  for (const auto& [name, is_there] : functions)
    (is_there ? there : missing) += std::string(" ") + name;
  if (there.empty() || missing.empty()) return ok_status();
  return invalid_argument("of the memory functions its table has" + there +
                          " but not" + missing + "; give all four or none");
}

}  // namespace

Library::~Library() {
  if (handle != nullptr) dlclose(handle);
}

Status read_table(const attnguard_plugin* table, attnguard_plugin& to) {
  const std::string ours = std::to_string(ATTNGUARD_PLUGIN_ABI_VERSION);
  if (table == nullptr)
    return invalid_argument(std::string(kSymbol) + "(" + ours +
                            ") returned NULL: it does not work with ABI "
                            "version " +
                            ours + ", the newest of this attnguard");
  const std::uint32_t version = table->abi_version;
  if (version > ATTNGUARD_PLUGIN_ABI_VERSION)
    return invalid_argument(
        "it was built for plugin ABI version " + std::to_string(version) +
        ", and this attnguard knows up to " + ours +
        "; update attnguard, or build the plugin with its header");
  if (version == 0)
    return invalid_argument(
        "abi_version of its table is 0; set it to "
        "ATTNGUARD_PLUGIN_ABI_VERSION");
  if (table->size < kRequiredSize || table->size > kImplausibleSize)
    return invalid_argument(
        "size of its table is " + std::to_string(table->size) +
        ", and version " + std::to_string(version) + " has at least " +
        std::to_string(kRequiredSize) + "; set it to sizeof(attnguard_plugin)");
  // A function counts when it lies in there as a whole.
  const std::size_t head = offsetof(attnguard_plugin, create);
  const std::size_t functions = (table->size - head) / sizeof(void*);
  to = {};
  std::memcpy(&to, table,
              std::min(sizeof to, head + functions * sizeof(void*)));
  Status status = check_required(to);
  if (status.ok()) status = check_memory(to);
  return status;
}

Result<std::shared_ptr<const Library>> load_library(const std::string& path) {
  if (Status status = check_file(path); !status.ok()) return status;
  dlerror();
  void* handle = dlopen(with_folder(path).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return invalid_argument(
        "plugin '" + path +
        "' is no shared library that loads here: " + loader_error());
  auto library = std::make_shared<Library>(handle, path);
  const Result<const attnguard_plugin*> table = get_table(handle);
  Status status =
      table.ok() ? read_table(table.value(), library->call) : table.status();
  if (!status.ok())
    return Status(status.code(), "plugin '" + path + "': " + status.message());
  return std::shared_ptr<const Library>(std::move(library));
}

}  // namespace attnguard::plugin
