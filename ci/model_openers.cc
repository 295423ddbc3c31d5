#include "ci/model_openers.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#if ATTNGUARD_WITH_GGML
#include "adapters/llama_cpp/model.h"
#endif

namespace attnguard {
namespace {

namespace fs = std::filesystem;

// clang-format off
constexpr auto kOpeners = std::to_array<ModelOpener>({
#if ATTNGUARD_WITH_GGML
    {"llama.cpp", ".gguf", "GGUF",
     "flash=on|off|auto kv=f16|f32|bf16|q8_0 context=N sequences=N ubatch=N "
     "unified=1|0 swa_full=1|0 causal=1|0 threads=N gpu_layers=N path=DIR",
     open_llama_model},
#endif
});
// clang-format on

Status unreadable(const std::string& file, const std::string& why) {
  return {StatusCode::kIo, "cannot read " + file + ": " + why};
}

// The first bytes of the file, at most `most`.
Result<std::string> beginning_of(const std::string& file, std::size_t most) {
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  if (fs::is_directory(status))
    return unreadable(file, "it is a folder; name the model's file in it");
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return unreadable(file, std::strerror(errno ? errno : ENOENT));
  std::string bytes(most, '\0');
  stream.read(bytes.data(), static_cast<std::streamsize>(most));
  bytes.resize(static_cast<std::size_t>(stream.gcount()));
  if (bytes.empty()) return unreadable(file, "it is empty");
  return bytes;
}

std::string known_extensions() {
  std::string out;
  for (const ModelOpener& opener : kOpeners)
    out += (out.empty() ? "" : ", ") + std::string(opener.extension) + " (" +
           std::string(opener.name) + ")";
  return out.empty() ? "this build opens none" : "known are " + out;
}

}  // namespace

std::span<const ModelOpener> all_model_openers() { return kOpeners; }

Result<const ModelOpener*> find_model_opener(const std::string& file) {
  const Result<std::string> bytes = beginning_of(file, 8);
  if (!bytes.ok()) return bytes.status();
  for (const ModelOpener& opener : kOpeners)
    if (!opener.magic.empty() && bytes.value().starts_with(opener.magic))
      return &opener;
  const std::string extension = fs::path(file).extension().string();
  for (const ModelOpener& opener : kOpeners) {
    if (opener.extension != extension) continue;
    if (opener.magic.empty()) return &opener;
    return invalid_argument(file + " is no " + extension +
                            " file: it does not begin with '" +
                            std::string(opener.magic) + "'");
  }
  return invalid_argument("'" + file +
                          "' is no model file that can be opened; " +
                          known_extensions());
}

}  // namespace attnguard
