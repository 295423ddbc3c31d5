// How ggml's CPU kernels round in a model's own attention.
#ifndef ATTNGUARD_ADAPTERS_LLAMA_CPP_LIVE_ROUNDING_H_
#define ATTNGUARD_ADAPTERS_LLAMA_CPP_LIVE_ROUNDING_H_

#include <optional>

#include "guard/engine/engine.h"

namespace attnguard::llama_cpp {

// How a layer's keys and values are stored; nullopt: quantised in blocks.
struct Storage {
  bool flash = false;
  std::optional<Dtype> key = Dtype::kFp16;
  std::optional<Dtype> value = Dtype::kFp16;
};

// Keys and values are read from the cache as they are stored, so that only what
// the kernels do with them counts:
//   the query is rounded to the key's type (to q8_0 for types in blocks)
//   flash: sums over fp16 values may be held in fp16
//   off:   weights are rounded to the value's type
Numerics numerics_of(const Storage& storage, const Problem& problem);

}  // namespace attnguard::llama_cpp

#endif  // ATTNGUARD_ADAPTERS_LLAMA_CPP_LIVE_ROUNDING_H_
