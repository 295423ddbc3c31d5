#include "adapters/llama_cpp/ggml.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "adapters/llama_cpp/session.h"
#include "guard/base/text.h"

namespace attnguard {
namespace {

using ggml::Kernel;
using ggml::Library;
using ggml::Session;
using ggml::Settings;
using ggml::Storage;

struct KernelEntry {
  std::string_view name;
  Kernel kernel;
  std::string_view summary;
};

constexpr std::array<KernelEntry, 2> kKernels = {{
    {"flash", Kernel::kFlash,
     "ggml_flash_attn_ext on the CPU, llama.cpp's fused attention"},
    {"softmax", Kernel::kSoftmax,
     "ggml_mul_mat and ggml_soft_max_ext on the CPU, llama.cpp without flash "
     "attention"},
}};

std::string quoted(std::string_view text) {
  std::string result = "'";
  result += text;
  return result += '\'';
}

Status set_storage(std::string_view option, std::string_view name,
                   const Storage*& to) {
  to = ggml::find_storage(name);
  if (to) return ok_status();
  std::vector<std::string_view> known;
  for (const Storage& storage : ggml::all_storages())
    known.push_back(storage.name);
  return invalid_argument("ggml: " + std::string(option) + "= does not know " +
                          quoted(name) + suggestion(name, known));
}

Status set_key(std::string_view text, Settings& settings) {
  return set_storage("k", text, settings.key);
}

Status set_value(std::string_view text, Settings& settings) {
  return set_storage("v", text, settings.value);
}

Status set_both(std::string_view text, Settings& settings) {
  Status status = set_storage("kv", text, settings.key);
  settings.value = settings.key;
  return status;
}

Status set_threads(std::string_view text, Settings& settings) {
  const std::optional<std::int64_t> count = parse_int(text);
  if (!count || *count < 1 || *count > 512)
    return invalid_argument("ggml: threads= expects 1 to 512, not " +
                            quoted(text));
  settings.threads = static_cast<int>(*count);
  return ok_status();
}

// path= is read where the library is loaded.
Status set_path(std::string_view, Settings&) { return ok_status(); }

struct Option {
  std::string_view name;
  Status (*set)(std::string_view text, Settings& settings);
};

// In the order they are applied: k= and v= override kv=.
constexpr std::array<Option, 5> kOptions = {{{"kv", set_both},
                                             {"k", set_key},
                                             {"v", set_value},
                                             {"threads", set_threads},
                                             {"path", set_path}}};

Status check_option_names(const EngineSpec& spec) {
  std::vector<std::string_view> known;
  for (const Option& option : kOptions) known.push_back(option.name);
  for (const auto& [name, value] : spec.options)
    if (std::find(known.begin(), known.end(), name) == known.end())
      return invalid_argument("ggml: unknown option " + quoted(name) +
                              suggestion(name, known));
  return ok_status();
}

Result<Settings> parse_settings(const EngineSpec& spec) {
  std::vector<std::string_view> known;
  Settings settings;
  bool found = false;
  for (const KernelEntry& entry : kKernels) {
    known.push_back(entry.name);
    if (entry.name != spec.engine) continue;
    settings.kernel = entry.kernel;
    found = true;
  }
  if (!found)
    return invalid_argument("ggml: no engine " + quoted(spec.engine) +
                            suggestion(spec.engine, known));
  if (Status status = check_option_names(spec); !status.ok()) return status;
  settings.threads = omp_get_max_threads();
  for (const Option& option : kOptions) {
    const auto given = spec.options.find(std::string(option.name));
    if (given == spec.options.end()) continue;
    Status status = option.set(given->second, settings);
    if (!status.ok()) return status;
  }
  return settings;
}

std::string describe(const Library& library, const Settings& settings) {
  const auto name = [](const Storage* storage) {
    return std::string(storage ? storage->name : "as given");
  };
  std::string text = settings.kernel == Kernel::kFlash
                         ? "ggml_flash_attn_ext"
                         : "ggml_mul_mat and ggml_soft_max_ext";
  return text + " on the CPU, K " + name(settings.key) + ", V " +
         name(settings.value) + ", " + std::to_string(settings.threads) +
         (settings.threads == 1 ? " thread, " : " threads, ") +
         library.description() + " in " + library.folder;
}

std::vector<EngineListing> list_engines() {
  std::vector<EngineListing> result;
  for (const KernelEntry& entry : kKernels)
    result.push_back(
        {"ggml:" + std::string(entry.name), std::string(entry.summary)});
  return result;
}

Result<Engine> open_engine(const EngineSpec& spec) {
  const Result<Settings> settings = parse_settings(spec);
  if (!settings.ok()) return settings.status();
  const auto path = spec.options.find("path");
  const Result<std::shared_ptr<const Library>> library =
      ggml::load_library(path == spec.options.end() ? "" : path->second);
  if (!library.ok()) return library.status();
  const Result<std::shared_ptr<Session>> opened =
      Session::create(library.value(), settings.value());
  if (!opened.ok()) return opened.status();
  const std::shared_ptr<Session> session = opened.value();

  Engine engine;
  engine.name = spec.full;
  engine.description = describe(*library.value(), settings.value());
  engine.capabilities.dtypes = {Dtype::kFp32, Dtype::kFp16, Dtype::kBf16};
  engine.capabilities.features = session->features();
  // Rows are computed alike on any thread. Only the flash kernel for a single
  // query splits its keys between threads, so that its bits depend on their
  // number; and that is fixed here.
  engine.capabilities.deterministic = true;
  engine.capabilities.numerics = [session](const Problem& problem) {
    return session->numerics(problem);
  };
  engine.capabilities.unsupported = [session](const Problem& problem) {
    return session->unsupported(problem);
  };
  engine.run = [session](const AttentionCall& call) {
    return session->run(call);
  };
  return engine;
}

}  // namespace

const Adapter kGgmlAdapter = {
    "ggml", "llama.cpp's CPU attention kernels, from a ggml build found here",
    list_engines, open_engine};

}  // namespace attnguard
