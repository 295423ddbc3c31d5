// Element types as DLPack numbers them.
#ifndef ATTNGUARD_ADAPTERS_DLPACK_TYPES_H_
#define ATTNGUARD_ADAPTERS_DLPACK_TYPES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "adapters/dlpack/dlpack.h"

namespace attnguard::dlpack {

DataType data_type(Dtype dtype);

// nullopt: a type that the guard's tensors do not have.
std::optional<Dtype> dtype_of(const DataType& type);

// "type code 1 of 8 bits and 1 lane", for messages.
std::string type_name(const DataType& type);

// Devices whose memory the host reads: CPU, CUDA's pinned memory, ROCm's.
bool on_host(const Device& device);

// For each axis of a tensor with this order of axes: which axis of a view it
// is.
std::array<std::size_t, 4> view_axes(Layout layout);

// The value of an fp8 number: OCP e4m3 without infinities, where only
// s.1111.111 is NaN, and e5m2, which is fp16's upper half.
double decode_e4m3fn(std::uint8_t bits);
double decode_e5m2(std::uint8_t bits);

}  // namespace attnguard::dlpack

#endif  // ATTNGUARD_ADAPTERS_DLPACK_TYPES_H_
