// The types in which ggml stores keys and values, and what each costs in
// precision.
#ifndef ATTNGUARD_ADAPTERS_LLAMA_CPP_STORAGE_H_
#define ATTNGUARD_ADAPTERS_LLAMA_CPP_STORAGE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "guard/base/dtype.h"

namespace attnguard::ggml {

struct Storage {
  std::string_view name;  // As in options: "q8_0".
  int type;               // enum ggml_type in ggml.h
  std::int64_t block;     // Elements that share a scale; 1: no blocks.

  // The same format here; nullopt for block-quantised types.
  std::optional<Dtype> dtype;

  // Largest error of a stored element: relative to itself, or to the largest
  // magnitude in its block.
  double error;
};

std::span<const Storage> all_storages();

// nullptr when there is none of that name.
const Storage* find_storage(std::string_view name);

// The type that holds a problem's tensors as they are.
const Storage& storage_of(Dtype dtype);

// storage.error, or 0 when the storage holds every value of `dtype` (fp16's
// narrower range aside) exactly.
double storage_error(const Storage& storage, Dtype dtype);

}  // namespace attnguard::ggml

#endif  // ATTNGUARD_ADAPTERS_LLAMA_CPP_STORAGE_H_
