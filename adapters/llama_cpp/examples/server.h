// A very small server: a few sequences of random prompts that are decoded
// together, one is forked, one ends and another takes its cells.
#ifndef ATTNGUARD_ADAPTERS_LLAMA_CPP_EXAMPLES_SERVER_H_
#define ATTNGUARD_ADAPTERS_LLAMA_CPP_EXAMPLES_SERVER_H_

#include <cstdint>
#include <string>

#include "adapters/llama_cpp/examples/corruption.h"
#include "adapters/llama_cpp/live/live_hook.h"
#include "guard/base/status.h"

namespace attnguard::examples {

struct ServerOptions {
  std::string model;      // A .gguf file.
  std::string libraries;  // The folder of ggml's backends.
  bool flash = true;
  bool unified = true;        // One stream of cells for all sequences.
  std::string cache = "f16";  // f16, f32, bf16 or q8_0
  int steps = 12;             // Tokens that each sequence is decoded for.
  int ubatch = 512;
  std::uint64_t seed = 1;
  bool tell = true;  // Call the hook's begin_batch and so on.
};

struct ServerResult {
  std::int64_t tokens = 0;
  std::int64_t batches = 0;
  double seconds = 0;  // in llama_decode
};

// Serves once, in a context of its own. `hook` may be nullptr: then llama.cpp
// has no callback at all, unless there is a fault.
Result<ServerResult> serve(const ServerOptions& options,
                           llama_cpp::LiveHook* hook, Corruption& corruption);

}  // namespace attnguard::examples

#endif  // ATTNGUARD_ADAPTERS_LLAMA_CPP_EXAMPLES_SERVER_H_
