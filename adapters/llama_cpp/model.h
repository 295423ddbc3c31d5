// Whole models: a .gguf file on llama.cpp, as tokens to logits.
//
// libllama is opened at run time, as ggml is (ggml.h); nothing of it is linked
// or shipped. Its parameter structs go by value, so that this part is compiled
// against llama.h, where CMake finds one (ATTNGUARD_LLAMA_CPP). That the
// library's structs are those of the header is checked before they are used.
#ifndef ATTNGUARD_ADAPTERS_LLAMA_CPP_MODEL_H_
#define ATTNGUARD_ADAPTERS_LLAMA_CPP_MODEL_H_

#include <map>
#include <span>
#include <string>

#include "guard/base/status.h"
#include "guard/model/model.h"

namespace attnguard {

// Options, all of them optional:
//   flash=on|off|auto   flash attention; auto: as llama.cpp decides
//   kv=f16|f32|bf16|q8_0  how keys and values are cached; f16
//   context=N           most tokens of one sequence; 256
//   sequences=N         most sequences at a time; 4
//   ubatch=N            tokens that llama.cpp computes at a time; 512
//   unified=1|0         one cache for all sequences, or one for each; 1
//   swa_full=1|0        whether windowed layers keep the whole context; 1
//   causal=1|0          0 switches causal attention off, with
//                       llama_set_causal_attn: a leak on purpose; 1
//   threads=N           as many as there are cores; 1 for models below 64 MiB
//   gpu_layers=N        layers to leave to a GPU; 0
//   path=DIR            the folder of libllama.so, or a build folder above it;
//                       ATTNGUARD_GGML_PATH, else what was fetched
//
// kNotFound: no llama.cpp here, or none of its headers when this was built.
// kIo: no such file. kInvalidArgument: unknown option, or not a model; with
// what llama.cpp said. kUnsupported: a model that is no decoder, or a libllama
// that does not match the header.
//
// llama.cpp aborts the process on some damaged files: open those in a process
// of their own, as the command does.
Result<Model> open_llama_model(
    const std::string& file, const std::map<std::string, std::string>& options);

// Whether this build has it.
bool has_llama_models();

}  // namespace attnguard

#endif  // ATTNGUARD_ADAPTERS_LLAMA_CPP_MODEL_H_
