// libllama, opened at run time beside the ggml libraries that it needs.
#ifndef ATTNGUARD_ADAPTERS_LLAMA_CPP_MODEL_LIBRARY_H_
#define ATTNGUARD_ADAPTERS_LLAMA_CPP_MODEL_LIBRARY_H_

#include <string>

#include "guard/base/status.h"

namespace attnguard::llama {

struct Library {
  void* handle = nullptr;
  std::string file;
};

// Never unloaded. kNotFound as ggml's load_library, or when the folder has ggml
// and no libllama.
Result<Library> load_library(const std::string& path);

// llama.cpp prints nothing; the last lines that it would have printed as errors
// or warnings since forget_messages() end up in messages.
void keep_message(int level, const char* text, void* user_data);
void forget_messages();

// "; llama.cpp says: ...", or empty.
std::string messages();

}  // namespace attnguard::llama

#endif  // ATTNGUARD_ADAPTERS_LLAMA_CPP_MODEL_LIBRARY_H_
