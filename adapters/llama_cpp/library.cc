#include "adapters/llama_cpp/library.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <string_view>
#include <system_error>
#include <vector>

#include "adapters/engines_folder.h"

namespace attnguard::ggml {
namespace {

namespace fs = std::filesystem;

Status not_found(std::string message) {
  return {StatusCode::kNotFound, std::move(message)};
}

struct Place {
  std::string folder;
  std::string origin;  // What named the folder.
};

// The one place that the user's words or the defaults point to. A place that
// was named is the only one searched: falling back to another build would
// verify a kernel that nobody asked about.
Place library_place(const std::string& path) {
  if (!path.empty()) return {path, "path="};
  if (std::string named = environment("ATTNGUARD_GGML_PATH"); !named.empty())
    return {named, "ATTNGUARD_GGML_PATH"};
  const EnginesFolder engines = engines_folder();
  return {engines.path + "/llama_cpp/lib", engines.origin};
}

struct Files {
  std::string folder, base, registry;
};

// llama.cpp's own build leaves the libraries in bin, installs leave them in
// lib: accept the folder above as well.
Result<Files> find_files(const Place& place) {
  std::string looked_in;
  for (std::string_view below : {"", "/lib", "/bin"}) {
    const std::string folder = place.folder + std::string(below);
    Files files{folder, find_shared_library(folder, "ggml-base"),
                find_shared_library(folder, "ggml")};
    if (!files.base.empty() && !files.registry.empty()) return files;
    looked_in += "\n  " + folder;
  }
  return not_found(
      "ggml not found: no folder holds libggml-base.so and libggml.so; looked "
      "in (from " +
      place.origin + "):" + looked_in +
      "\nfetch it with ci/fetch_engines.sh, or name a llama.cpp build with "
      "path=DIR or ATTNGUARD_GGML_PATH=DIR");
}

Result<void*> open_file(const std::string& file) {
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle) return handle;
  const char* reason = dlerror();
  return not_found("ggml: cannot load " + file + ": " +
                   (reason ? reason : "unknown error"));
}

// Looks functions up and remembers the first that is missing.
class Symbols {
 public:
  Symbols(void* handle, std::string file)
      : handle_(handle), file_(std::move(file)) {}

  template <typename Function>
  void optional(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(dlsym(handle_, name));
  }

  template <typename Function>
  void require(const char* name, Function*& function) {
    optional(name, function);
    if (!function && missing_.empty()) missing_ = name;
  }

  Status status() const {
    if (missing_.empty()) return ok_status();
    return not_found("ggml: " + file_ + " has no symbol " + missing_ +
                     "; use a llama.cpp build of 2025 or later");
  }

 private:
  void* handle_;
  std::string file_;
  std::string missing_;
};

Status resolve_base(Symbols symbols, Functions& call) {
  symbols.require("ggml_log_set", call.log_set);
  symbols.require("ggml_init", call.init);
  symbols.require("ggml_free", call.free);
  symbols.require("ggml_tensor_overhead", call.tensor_overhead);
  symbols.require("ggml_graph_overhead", call.graph_overhead);
  symbols.require("ggml_new_tensor_4d", call.new_tensor_4d);
  symbols.require("ggml_get_data", call.get_data);
  symbols.require("ggml_row_size", call.row_size);
  symbols.require("ggml_quantize_chunk", call.quantize_chunk);
  symbols.require("ggml_mul_mat", call.mul_mat);
  symbols.require("ggml_mul_mat_set_prec", call.mul_mat_set_prec);
  symbols.require("ggml_scale", call.scale);
  symbols.require("ggml_tanh", call.tanh);
  symbols.require("ggml_view_4d", call.view_4d);
  symbols.require("ggml_transpose", call.transpose);
  symbols.require("ggml_cont", call.cont);
  symbols.require("ggml_soft_max_ext", call.soft_max_ext);
  symbols.require("ggml_flash_attn_ext", call.flash_attn_ext);
  symbols.require("ggml_flash_attn_ext_set_prec", call.flash_attn_ext_set_prec);
  symbols.require("ggml_new_graph", call.new_graph);
  symbols.require("ggml_build_forward_expand", call.build_forward_expand);
  symbols.require("ggml_backend_alloc_ctx_tensors",
                  call.backend_alloc_ctx_tensors);
  symbols.require("ggml_backend_buffer_free", call.backend_buffer_free);
  symbols.require("ggml_backend_graph_compute", call.backend_graph_compute);
  symbols.require("ggml_backend_free", call.backend_free);
  symbols.require("ggml_backend_dev_init", call.backend_dev_init);
  symbols.require("ggml_backend_dev_backend_reg", call.backend_dev_backend_reg);
  symbols.require("ggml_backend_reg_get_proc_address",
                  call.backend_reg_get_proc_address);
  symbols.optional("ggml_soft_max_add_sinks", call.soft_max_add_sinks);
  symbols.optional("ggml_flash_attn_ext_add_sinks",
                   call.flash_attn_ext_add_sinks);
  symbols.optional("ggml_version", call.version);
  return symbols.status();
}

Status resolve_registry(Symbols symbols, Functions& call) {
  symbols.require("ggml_backend_dev_by_type", call.backend_dev_by_type);
  symbols.require("ggml_backend_load_all_from_path",
                  call.backend_load_all_from_path);
  return symbols.status();
}

// Builds differ: the CPU kernels are linked in, or lie beside the library in
// one file per instruction set, of which ggml picks the best that runs here.
Status find_cpu(Library& library) {
  library.cpu = library.call.backend_dev_by_type(kDeviceCpu);
  if (!library.cpu) {
    library.call.backend_load_all_from_path(library.folder.c_str());
    library.cpu = library.call.backend_dev_by_type(kDeviceCpu);
  }
  if (!library.cpu)
    return not_found(
        "ggml: no CPU backend (libggml-cpu*.so) that runs on "
        "this machine in " +
        library.folder);
  Registry* registry = library.call.backend_dev_backend_reg(library.cpu);
  library.set_threads =
      reinterpret_cast<SetThreads>(library.call.backend_reg_get_proc_address(
          registry, "ggml_backend_set_n_threads"));
  if (!library.set_threads)
    return not_found("ggml: the CPU backend in " + library.folder +
                     " has no ggml_backend_set_n_threads");
  return ok_status();
}

Result<std::shared_ptr<const Library>> open_library(const Files& files) {
  const Result<void*> base = open_file(files.base);
  if (!base.ok()) return base.status();
  const Result<void*> registry = open_file(files.registry);
  if (!registry.ok()) return registry.status();

  auto library = std::make_shared<Library>();
  library->folder = files.folder;
  Status status = resolve_base({base.value(), files.base}, library->call);
  if (status.ok())
    status =
        resolve_registry({registry.value(), files.registry}, library->call);
  if (!status.ok()) return status;
  // A library does not print, and neither may the one behind it.
  library->call.log_set([](int, const char*, void*) {}, nullptr);
  status = find_cpu(*library);
  if (!status.ok()) return status;
  return std::shared_ptr<const Library>(std::move(library));
}

}  // namespace

std::string find_shared_library(const std::string& folder,
                                const std::string& stem) {
  std::error_code error;
  const fs::path plain = fs::path(folder) / ("lib" + stem + ".so");
  if (fs::exists(plain, error)) return plain.string();
  std::vector<std::string> versioned;
  const std::string prefix = "lib" + stem + ".";
  for (fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with(prefix) && name.find(".so") != std::string::npos)
      versioned.push_back(it->path().string());
  }
  if (versioned.empty()) return {};
  return *std::max_element(versioned.begin(), versioned.end());
}

std::string Library::description() const {
  return call.version ? std::string("ggml ") + call.version() : "ggml";
}

Result<std::shared_ptr<const Library>> load_library(const std::string& path) {
  static std::mutex mutex;
  static std::shared_ptr<const Library> loaded;

  Result<Files> files = find_files(library_place(path));
  if (!files.ok()) return files.status();
  std::error_code error;
  const fs::path real = fs::canonical(files.value().folder, error);
  if (!error) files.value().folder = real.string();

  const std::lock_guard<std::mutex> lock(mutex);
  if (loaded && loaded->folder != files.value().folder)
    return unsupported("ggml was already loaded from " + loaded->folder +
                       ": one process can hold one build of it; run " +
                       files.value().folder + " in another");
  if (!loaded) {
    Result<std::shared_ptr<const Library>> opened = open_library(files.value());
    if (!opened.ok()) return opened;
    loaded = opened.value();
  }
  return loaded;
}

}  // namespace attnguard::ggml
