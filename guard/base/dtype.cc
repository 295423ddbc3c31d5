#include "guard/base/dtype.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace attnguard {
namespace {

// Significand widths (with the hidden bit): 53, 24, 11, 8. The unit roundoff
// of round-to-nearest is 2^-width.
constexpr std::array<DtypeInfo, 4> kDtypes = {{
    {Dtype::kFp64, "fp64", 8, 0x1p-53, std::numeric_limits<double>::max(),
     0x7ffa5a5aa5a5dead},
    {Dtype::kFp32, "fp32", 4, 0x1p-24, std::numeric_limits<float>::max(),
     0x7fda5ead},
    {Dtype::kFp16, "fp16", 2, 0x1p-11, 65504.0, 0x7ead},
    {Dtype::kBf16, "bf16", 2, 0x1p-8, 0x1.fep127, 0x7fea},
}};

// Rounds a double to a binary format with `bits` significand bits, minimum
// normal exponent `min_exponent` and largest finite value `max_finite`.
double round_to(double value, int bits, int min_exponent, double max_finite) {
  if (!std::isfinite(value) || value == 0.0) return value;
  int exponent = 0;
  std::frexp(value, &exponent);  // |value| in [2^(exponent-1), 2^exponent)
  const int lowest = std::max(exponent - 1, min_exponent) - (bits - 1);
  const double ulp = std::ldexp(1.0, lowest);
  const double rounded = std::nearbyint(value / ulp) * ulp;
  if (std::abs(rounded) > max_finite)
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  return rounded;
}

// The float nearest to `value` under round-to-odd: converting it again to a
// type at least two bits narrower rounds as if from the double directly.
float to_float_round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  const double back = nearest;
  if (back == value || !std::isfinite(back) || std::isnan(value))
    return nearest;
  std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest);
  if (bits & 1) return nearest;
  // The other neighbour is odd; it lies on the far side of `value`.
  const bool away = std::abs(back) < std::abs(value);
  bits = away ? bits + 1 : bits - 1;
  return std::bit_cast<float>(bits);
}

std::uint16_t fp16_from_float(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint16_t sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;   // NaN
  if (magnitude >= 0x47800000) return sign | 0x7c00;  // >= 65536 or inf
  if (magnitude < 0x38800000) {                       // subnormal in fp16
    // Adding 2^-1 * 2^k aligns the fp16 subnormal grid with float's last bit.
    const float aligned = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(
        sign | (std::bit_cast<std::uint32_t>(aligned) - 0x3f000000));
  }
  const std::uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000) >> 13));
}

float fp16_to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  const std::uint32_t magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00)
    return std::bit_cast<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  if (magnitude < 0x400) {
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return sign ? -value : value;
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000));
}

std::uint16_t bf16_from_float(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return static_cast<std::uint16_t>((bits >> 16) | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float bf16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

template <typename T, typename Convert>
void decode_as(const void* from, std::int64_t stride, std::int64_t count,
               double* to, Convert convert) {
  const T* source = static_cast<const T*>(from);
  if (stride == 1) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = convert(source[i]);
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) to[i] = convert(source[i * stride]);
}

template <typename T, typename Convert>
void encode_as(const double* from, std::int64_t count, void* to,
               std::int64_t stride, Convert convert) {
  T* target = static_cast<T*>(to);
  if (stride == 1) {
    for (std::int64_t i = 0; i < count; ++i) target[i] = convert(from[i]);
    return;
  }
  for (std::int64_t i = 0; i < count; ++i)
    target[i * stride] = convert(from[i]);
}

// Index of the first element whose bits under `mask` are `wanted`, or -1.
template <typename T>
std::int64_t find_bits(const void* data, std::int64_t stride,
                       std::int64_t count, T mask, T wanted) {
  const T* element = static_cast<const T*>(data);
  if (stride == 1) {
    // No early exit in the usual case, so that the loop vectorises.
    T found = 0;
    for (std::int64_t i = 0; i < count; ++i)
      found |= static_cast<T>((element[i] & mask) == wanted);
    if (found == 0) return -1;
  }
  for (std::int64_t i = 0; i < count; ++i)
    if ((element[i * stride] & mask) == wanted) return i;
  return -1;
}

std::int64_t first_with_bits(Dtype dtype, const void* data, std::int64_t stride,
                             std::int64_t count, std::uint64_t mask,
                             std::uint64_t wanted) {
  switch (dtype_size(dtype)) {
    case 8:
      return find_bits<std::uint64_t>(data, stride, count, mask, wanted);
    case 4:
      return find_bits<std::uint32_t>(data, stride, count,
                                      static_cast<std::uint32_t>(mask),
                                      static_cast<std::uint32_t>(wanted));
    default:
      return find_bits<std::uint16_t>(data, stride, count,
                                      static_cast<std::uint16_t>(mask),
                                      static_cast<std::uint16_t>(wanted));
  }
}

}  // namespace

std::span<const DtypeInfo> all_dtypes() { return kDtypes; }

const DtypeInfo& dtype_info(Dtype dtype) {
  return kDtypes[static_cast<std::size_t>(dtype)];
}

std::optional<Dtype> parse_dtype(std::string_view name) {
  for (const DtypeInfo& info : kDtypes)
    if (info.name == name) return info.dtype;
  return std::nullopt;
}

std::uint16_t fp16_bits(double value) {
  return fp16_from_float(to_float_round_to_odd(value));
}
std::uint16_t bf16_bits(double value) {
  return bf16_from_float(to_float_round_to_odd(value));
}
double fp16_value(std::uint16_t bits) { return fp16_to_float(bits); }
double bf16_value(std::uint16_t bits) { return bf16_to_float(bits); }

void decode(Dtype dtype, const void* from, std::int64_t stride,
            std::int64_t count, double* to) {
  switch (dtype) {
    case Dtype::kFp64:
      return decode_as<double>(from, stride, count, to,
                               [](double x) { return x; });
    case Dtype::kFp32:
      return decode_as<float>(from, stride, count, to,
                              [](float x) { return static_cast<double>(x); });
    case Dtype::kFp16:
      return decode_as<std::uint16_t>(from, stride, count, to, fp16_value);
    case Dtype::kBf16:
      return decode_as<std::uint16_t>(from, stride, count, to, bf16_value);
  }
}

void encode(Dtype dtype, const double* from, std::int64_t count, void* to,
            std::int64_t stride) {
  switch (dtype) {
    case Dtype::kFp64:
      return encode_as<double>(from, count, to, stride,
                               [](double x) { return x; });
    case Dtype::kFp32:
      return encode_as<float>(from, count, to, stride,
                              [](double x) { return static_cast<float>(x); });
    case Dtype::kFp16:
      return encode_as<std::uint16_t>(from, count, to, stride, fp16_bits);
    case Dtype::kBf16:
      return encode_as<std::uint16_t>(from, count, to, stride, bf16_bits);
  }
}

double quantize(Dtype dtype, double value) {
  switch (dtype) {
    case Dtype::kFp64:
      return value;
    case Dtype::kFp32:
      return static_cast<double>(static_cast<float>(value));
    case Dtype::kFp16:
      return round_to(value, 11, -14, dtype_info(dtype).max_finite);
    case Dtype::kBf16:
      return round_to(value, 8, -126, dtype_info(dtype).max_finite);
  }
  return value;
}

void fill_poison(Dtype dtype, void* data, std::int64_t count) {
  const std::uint64_t bits = dtype_info(dtype).poison_bits;
  const auto fill = [&]<typename T>(T pattern) {
    std::fill_n(static_cast<T*>(data), count, pattern);
  };
  switch (dtype_size(dtype)) {
    case 8:
      return fill(bits);
    case 4:
      return fill(static_cast<std::uint32_t>(bits));
    default:
      return fill(static_cast<std::uint16_t>(bits));
  }
}

std::int64_t first_poison(Dtype dtype, const void* data, std::int64_t stride,
                          std::int64_t count) {
  const std::uint64_t bits = dtype_info(dtype).poison_bits;
  return first_with_bits(dtype, data, stride, count, ~std::uint64_t{0}, bits);
}

std::int64_t first_not_finite(Dtype dtype, const void* data,
                              std::int64_t stride, std::int64_t count) {
  // NaN and infinity have every exponent bit set, and nothing else has.
  constexpr std::array<std::uint64_t, 4> kExponent = {
      0x7ff0000000000000, 0x7f800000, 0x7c00, 0x7f80};
  const std::uint64_t exponent = kExponent[static_cast<std::size_t>(dtype)];
  return first_with_bits(dtype, data, stride, count, exponent, exponent);
}

bool is_poison(Dtype dtype, const void* element) {
  const DtypeInfo& info = dtype_info(dtype);
  return std::memcmp(element, &info.poison_bits, info.size) == 0;
}

}  // namespace attnguard
