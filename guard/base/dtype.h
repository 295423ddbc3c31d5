// Element types of tensors, their rounding, and conversion to and from double.
//
// Conversions to a narrower type round to nearest, ties to even; values beyond
// the largest finite number become infinities, and NaN stays NaN. double -> X
// rounds once (no intermediate float), so decode(encode(x)) is the value an
// engine sees.
#ifndef ATTNGUARD_GUARD_BASE_DTYPE_H_
#define ATTNGUARD_GUARD_BASE_DTYPE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace attnguard {

enum class Dtype : std::uint8_t { kFp64, kFp32, kFp16, kBf16 };

struct DtypeInfo {
  Dtype dtype;
  std::string_view name;      // As written in problems and policies: "fp16".
  std::size_t size;           // Bytes of one element.
  double unit_roundoff;       // Largest relative error of one rounding.
  double max_finite;          // Largest finite value.
  std::uint64_t poison_bits;  // A quiet NaN that no engine computes.
};

// Every dtype, in the order of the enum.
std::span<const DtypeInfo> all_dtypes();

const DtypeInfo& dtype_info(Dtype dtype);

inline std::string_view dtype_name(Dtype dtype) {
  return dtype_info(dtype).name;
}
inline std::size_t dtype_size(Dtype dtype) { return dtype_info(dtype).size; }
inline double unit_roundoff(Dtype dtype) {
  return dtype_info(dtype).unit_roundoff;
}

// nullopt when the name is not one of all_dtypes(): it never falls back.
std::optional<Dtype> parse_dtype(std::string_view name);

// Converts `count` elements. `stride` counts elements of the dtype between
// neighbours on the memory side; the double side is contiguous.
void decode(Dtype dtype, const void* from, std::int64_t stride,
            std::int64_t count, double* to);
void encode(Dtype dtype, const double* from, std::int64_t count, void* to,
            std::int64_t stride);

// decode(encode(value)): the nearest value of the dtype.
double quantize(Dtype dtype, double value);

std::uint16_t fp16_bits(double value);
std::uint16_t bf16_bits(double value);
double fp16_value(std::uint16_t bits);
double bf16_value(std::uint16_t bits);

// Fills `count` contiguous elements with the dtype's poison pattern.
void fill_poison(Dtype dtype, void* data, std::int64_t count);

// Index of the first of `count` elements that holds the poison pattern, or -1.
std::int64_t first_poison(Dtype dtype, const void* data, std::int64_t stride,
                          std::int64_t count);

// Index of the first of `count` elements that is NaN or infinite, or -1.
std::int64_t first_not_finite(Dtype dtype, const void* data,
                              std::int64_t stride, std::int64_t count);

// True when the element holds the poison pattern bit for bit.
bool is_poison(Dtype dtype, const void* element);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_BASE_DTYPE_H_
