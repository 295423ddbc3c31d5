#include "adapters/llama_cpp/storage.h"

#include <array>

namespace attnguard::ggml {
namespace {

// q8_0: 32 signed bytes and one fp16 scale, largest magnitude / 127. Rounding
// to a byte costs half a step, 1/254, and rounding the scale 2^-11.
constexpr std::array<Storage, 4> kStorages = {{
    {"f32", 0, 1, Dtype::kFp32, 0x1p-24},
    {"f16", 1, 1, Dtype::kFp16, 0x1p-11},
    {"bf16", 30, 1, Dtype::kBf16, 0x1p-8},
    {"q8_0", 8, 32, std::nullopt, 1.0 / 254 + 0x1p-11},
}};

}  // namespace

std::span<const Storage> all_storages() { return kStorages; }

const Storage* find_storage(std::string_view name) {
  for (const Storage& storage : kStorages)
    if (storage.name == name) return &storage;
  return nullptr;
}

const Storage& storage_of(Dtype dtype) {
  for (const Storage& storage : kStorages)
    if (storage.dtype == dtype) return storage;
  return kStorages[0];
}

double storage_error(const Storage& storage, Dtype dtype) {
  if (storage.dtype && unit_roundoff(*storage.dtype) <= unit_roundoff(dtype))
    return 0;
  return storage.error;
}

}  // namespace attnguard::ggml
