#include "adapters/dlpack/types.h"

#include <cmath>
#include <limits>

namespace attnguard::dlpack {
namespace {

// A sign bit, `exponent_bits` of exponent, the rest mantissa.
double decode_small(std::uint8_t bits, int exponent_bits) {
  const int mantissa_bits = 7 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const double fraction = std::ldexp(mantissa, -mantissa_bits);
  const double magnitude = exponent == 0
                               ? std::ldexp(fraction, 1 - bias)
                               : std::ldexp(1 + fraction, exponent - bias);
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

}  // namespace

DataType data_type(Dtype dtype) {
  const auto bits = static_cast<std::uint8_t>(8 * dtype_size(dtype));
  return {dtype == Dtype::kBf16 ? kBfloat : kFloat, bits, 1};
}

std::optional<Dtype> dtype_of(const DataType& type) {
  for (const Dtype dtype :
       {Dtype::kFp64, Dtype::kFp32, Dtype::kFp16, Dtype::kBf16}) {
    const DataType known = data_type(dtype);
    if (type.code == known.code && type.bits == known.bits &&
        type.lanes == known.lanes)
      return dtype;
  }
  return std::nullopt;
}

std::string type_name(const DataType& type) {
  return "type code " + std::to_string(type.code) + " of " +
         std::to_string(type.bits) + " bits and " + std::to_string(type.lanes) +
         (type.lanes == 1 ? " lane" : " lanes");
}

bool on_host(const Device& device) {
  return device.device_type == 1 || device.device_type == 3 ||
         device.device_type == 11;
}

std::array<std::size_t, 4> view_axes(Layout layout) {
  switch (layout) {
    case Layout::kBhsd:
      return {0, 1, 2, 3};
    case Layout::kBshd:
      return {0, 2, 1, 3};
    case Layout::kSbhd:
      break;
  }
  return {2, 0, 1, 3};
}

double decode_e4m3fn(std::uint8_t bits) {
  if ((bits & 0x7f) == 0x7f) return std::numeric_limits<double>::quiet_NaN();
  return decode_small(bits, 4);
}

double decode_e5m2(std::uint8_t bits) {
  const int magnitude = bits & 0x7f;
  if (magnitude > 0x7c) return std::numeric_limits<double>::quiet_NaN();
  if (magnitude == 0x7c) return (bits & 0x80) != 0 ? -HUGE_VAL : HUGE_VAL;
  return decode_small(bits, 5);
}

}  // namespace attnguard::dlpack
