// The options of a .gguf file, read.
#ifndef ATTNGUARD_ADAPTERS_LLAMA_CPP_MODEL_OPTIONS_H_
#define ATTNGUARD_ADAPTERS_LLAMA_CPP_MODEL_OPTIONS_H_

#include <cstdint>
#include <map>
#include <string>

#include "guard/base/status.h"

namespace attnguard::llama {

struct Options {
  std::string flash = "auto";
  std::string kv = "f16";
  std::int64_t context = 256;
  std::int64_t sequences = 4;
  std::int64_t ubatch = 512;
  bool unified = true;
  bool swa_full = true;
  bool causal = true;
  std::int64_t threads = 0;  // 0: as many as there are cores.
  std::int64_t gpu_layers = 0;
  std::string path;
};

// kInvalidArgument names the option and what it takes.
Result<Options> read_options(const std::map<std::string, std::string>& given);

}  // namespace attnguard::llama

#endif  // ATTNGUARD_ADAPTERS_LLAMA_CPP_MODEL_OPTIONS_H_
