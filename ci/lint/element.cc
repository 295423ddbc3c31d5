#include "ci/lint/element.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "ci/lint/graph.h"

namespace attnguard::lint {
namespace {

constexpr int kUint8 = 2, kInt8 = 3;  // ONNX's numbers, as in graph.h.

template <typename T>
double element(const char* bytes, std::int64_t index) {
  T value;
  std::memcpy(&value, bytes + index * static_cast<std::int64_t>(sizeof(T)),
              sizeof(T));
  return static_cast<double>(value);
}

}  // namespace

double from_half(std::uint16_t bits) {
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  if (exponent == 31)
    return fraction != 0 ? std::nan("")
                         : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

double from_bfloat(std::uint16_t bits) {
  const std::uint32_t wide = std::uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

ElementFormat element_format(int type) {
  switch (type) {
    case kFloat:
      return {4, element<float>};
    case kDouble:
      return {8, element<double>};
    case kInt8:
      return {1, element<std::int8_t>};
    case kUint8:
    case kBool:
      return {1, element<std::uint8_t>};
    case kInt32:
      return {4, element<std::int32_t>};
    case kInt64:
      return {8, element<std::int64_t>};
    case kHalf:
      return {2, [](const char* bytes, std::int64_t index) {
                std::uint16_t bits;
                std::memcpy(&bits, bytes + 2 * index, sizeof(bits));
                return from_half(bits);
              }};
    case kBfloat16:
      return {2, [](const char* bytes, std::int64_t index) {
                std::uint16_t bits;
                std::memcpy(&bits, bytes + 2 * index, sizeof(bits));
                return from_bfloat(bits);
              }};
    default:
      return {};
  }
}

}  // namespace attnguard::lint
