// In place of model.cc where llama.h was not found.
#include "adapters/llama_cpp/model.h"

namespace attnguard {

bool has_llama_models() { return false; }

Result<Model> open_llama_model(const std::string&,
                               const std::map<std::string, std::string>&) {
  return Status(
      StatusCode::kNotFound,
      "this build cannot open .gguf files: llama.h was not found when it was "
      "made. Run ci/fetch_engines.sh, or name a llama.cpp folder with cmake "
      "-DATTNGUARD_LLAMA_CPP=DIR, and build again");
}

}  // namespace attnguard
