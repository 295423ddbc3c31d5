#include "guard/base/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "guard/base/rng.h"

namespace attnguard {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A 16-bit format: 1 sign bit, exponent, mantissa.
struct Format {
  Dtype dtype;
  int mantissa_bits;
  int exponent_bits;
  std::uint16_t (*bits)(double);
  double (*value)(std::uint16_t);

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  std::uint16_t infinity() const {
    return static_cast<std::uint16_t>(((1 << exponent_bits) - 1)
                                      << mantissa_bits);
  }
};

constexpr Format kFormats[] = {
    {Dtype::kFp16, 10, 5, fp16_bits, fp16_value},
    {Dtype::kBf16, 7, 8, bf16_bits, bf16_value},
};

// The value of a pattern by the definition of the format.
double defined_value(const Format& format, std::uint32_t bits) {
  const int mantissa =
      static_cast<int>(bits & ((1u << format.mantissa_bits) - 1));
  const int exponent =
      static_cast<int>((bits & 0x7fff) >> format.mantissa_bits);
  const double sign = bits & 0x8000 ? -1.0 : 1.0;
  if (exponent == (1 << format.exponent_bits) - 1)
    return mantissa ? kNaN : sign * kInf;
  const int hidden = exponent ? 1 << format.mantissa_bits : 0;
  return sign *
         std::ldexp(hidden + mantissa, std::max(exponent, 1) - format.bias() -
                                           format.mantissa_bits);
}

TEST(Dtype, DecodesEveryPatternOfThe16BitTypesByDefinition) {
  for (const Format& format : kFormats)
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
      const double wanted = defined_value(format, bits);
      const double seen = format.value(static_cast<std::uint16_t>(bits));
      if (std::isnan(wanted))
        ASSERT_TRUE(std::isnan(seen)) << bits;
      else
        ASSERT_EQ(std::bit_cast<std::uint64_t>(wanted),
                  std::bit_cast<std::uint64_t>(seen))
            << dtype_name(format.dtype) << " " << bits;
    }
}

TEST(Dtype, RoundTripsEveryPatternOfThe16BitTypes) {
  for (const Format& format : kFormats)
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
      const double value = format.value(static_cast<std::uint16_t>(bits));
      const std::uint16_t back = format.bits(value);
      if (std::isnan(value)) {
        ASSERT_TRUE(std::isnan(format.value(back))) << bits;
      } else {
        ASSERT_EQ(back, bits) << dtype_name(format.dtype);
        ASSERT_EQ(quantize(format.dtype, value), value);
      }
    }
}

// Between neighbours a < b (also between the largest finite value and the
// power of two that would follow it): the midpoint goes to the even one, and
// the smallest step to either side of it decides for that side.
TEST(Dtype, RoundsToNearestEvenBetweenAllNeighbours) {
  for (const Format& format : kFormats)
    for (std::uint32_t bits = 0; bits < format.infinity(); ++bits) {
      const auto low = static_cast<std::uint16_t>(bits);
      const auto high = static_cast<std::uint16_t>(bits + 1);
      const double a = format.value(low);
      // As if the exponent had no limit, where high is infinity.
      const double b = high == format.infinity()
                           ? std::ldexp(1.0, format.bias() + 1)
                           : format.value(high);
      const double middle = (a + b) / 2;
      const std::uint16_t even = low & 1 ? high : low;
      ASSERT_EQ(format.bits(middle), even) << bits;
      ASSERT_EQ(format.bits(std::nextafter(middle, 0.0)), low) << bits;
      ASSERT_EQ(format.bits(std::nextafter(middle, kInf)), high) << bits;
      ASSERT_EQ(format.bits(-middle), even | 0x8000) << bits;
      ASSERT_EQ(format.bits(std::nextafter(-middle, -kInf)), high | 0x8000);
    }
}

TEST(Dtype, RoundsOnceWhereAStepThroughFloatWouldRoundTwice) {
  // A float in between would drop the 2^-40 and leave a tie to even.
  const double above_tie = 1 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(quantize(Dtype::kFp16, above_tie), 1 + 0x1p-10);
  EXPECT_EQ(fp16_value(fp16_bits(above_tie)), 1 + 0x1p-10);
  const double below_tie = 1 + 3 * 0x1p-11 - 0x1p-40;
  EXPECT_EQ(fp16_value(fp16_bits(below_tie)), 1 + 0x1p-10);
  const double bf16_above = 1 + 0x1p-8 + 0x1p-45;
  EXPECT_EQ(bf16_value(bf16_bits(bf16_above)), 1 + 0x1p-7);
  EXPECT_EQ(quantize(Dtype::kBf16, bf16_above), 1 + 0x1p-7);
}

TEST(Dtype, QuantizeAgreesWithEncodeThenDecode) {
  for (const DtypeInfo& info : all_dtypes())
    for (std::uint64_t i = 0; i < 200000; ++i) {
      // Every exponent of double and beyond the range of each type.
      const double value = std::bit_cast<double>(mix_bits(i));
      std::uint64_t stored = 0;
      double back = 0;
      encode(info.dtype, &value, 1, &stored, 1);
      decode(info.dtype, &stored, 1, 1, &back);
      const double direct = quantize(info.dtype, value);
      ASSERT_TRUE(direct == back || (std::isnan(direct) && std::isnan(back)))
          << info.name << " " << value << ": " << direct << " and " << back;
      ASSERT_EQ(std::signbit(direct), std::signbit(back)) << value;
    }
}

TEST(Dtype, QuantizeAgreesWithEncodeNearOne) {
  for (const DtypeInfo& info : all_dtypes())
    for (std::uint64_t i = 0; i < 100000; ++i) {
      const double value =
          near_normal(mix_bits(i)) * std::ldexp(1.0, -static_cast<int>(i % 30));
      std::uint64_t stored = 0;
      double back = 0;
      encode(info.dtype, &value, 1, &stored, 1);
      decode(info.dtype, &stored, 1, 1, &back);
      ASSERT_EQ(quantize(info.dtype, value), back) << info.name << " " << value;
      const double smallest = info.dtype == Dtype::kFp16 ? 0x1p-24 : 0;
      ASSERT_LE(std::abs(back - value),
                info.unit_roundoff * std::abs(value) + smallest / 2);
    }
}

TEST(Dtype, OverflowsToInfinityAndKeepsSpecialValues) {
  for (const DtypeInfo& info : all_dtypes()) {
    EXPECT_EQ(quantize(info.dtype, info.max_finite), info.max_finite);
    EXPECT_EQ(quantize(info.dtype, kInf), kInf);
    EXPECT_EQ(quantize(info.dtype, -kInf), -kInf);
    EXPECT_TRUE(std::isnan(quantize(info.dtype, kNaN)));
    EXPECT_TRUE(std::signbit(quantize(info.dtype, -0.0)));
    if (info.dtype != Dtype::kFp64) {
      EXPECT_EQ(quantize(info.dtype, -2 * info.max_finite), -kInf);
    }
  }
  EXPECT_EQ(fp16_bits(65504), 0x7bff);
  EXPECT_EQ(fp16_bits(65519.999), 0x7bff);
  EXPECT_EQ(fp16_bits(65520), 0x7c00);
  EXPECT_EQ(fp16_bits(1e300), 0x7c00);
  EXPECT_EQ(fp16_bits(0x1p-25), 0);  // tie to even
  EXPECT_EQ(fp16_bits(0x1.0001p-25), 1);
}

TEST(Dtype, EncodesAndDecodesWithStrides) {
  for (const DtypeInfo& info : all_dtypes()) {
    const std::vector<double> values = {1, -2, 0.5, 3};
    std::vector<std::byte> memory(info.size * 12);
    fill_poison(info.dtype, memory.data(), 12);
    encode(info.dtype, values.data(), 4, memory.data(), 3);
    std::vector<double> back(4);
    decode(info.dtype, memory.data(), 3, 4, back.data());
    EXPECT_EQ(back, values) << info.name;
    for (std::size_t i = 0; i < 12; ++i)
      EXPECT_EQ(is_poison(info.dtype, memory.data() + i * info.size),
                i % 3 != 0);
  }
}

TEST(Dtype, PoisonIsAQuietNaNOfEachType) {
  for (const DtypeInfo& info : all_dtypes()) {
    std::uint64_t element = 0;
    fill_poison(info.dtype, &element, 1);
    EXPECT_TRUE(is_poison(info.dtype, &element));
    double value = 0;
    decode(info.dtype, &element, 1, 1, &value);
    EXPECT_TRUE(std::isnan(value)) << info.name;
    // Not the NaN that arithmetic gives.
    encode(info.dtype, &kNaN, 1, &element, 1);
    EXPECT_FALSE(is_poison(info.dtype, &element)) << info.name;
  }
}

TEST(Dtype, ParsesItsOwnNamesAndNothingElse) {
  for (const DtypeInfo& info : all_dtypes()) {
    EXPECT_EQ(parse_dtype(info.name), info.dtype);
    EXPECT_EQ(dtype_info(info.dtype).dtype, info.dtype);
    EXPECT_EQ(dtype_name(info.dtype), info.name);
  }
  for (const char* name : {"", "fp", "FP32", "float", "fp32 ", "fp8_e4m3"})
    EXPECT_FALSE(parse_dtype(name).has_value()) << name;
}

TEST(Dtype, FindsTheFirstNonFiniteAndTheFirstPoisonedElement) {
  for (const DtypeInfo& info : all_dtypes()) {
    for (std::int64_t stride : {1, 3}) {
      std::vector<std::byte> data(40 * 3 * info.size);
      const std::vector<double> values(40, -info.max_finite);
      encode(info.dtype, values.data(), 40, data.data(), stride);
      EXPECT_EQ(first_not_finite(info.dtype, data.data(), stride, 40), -1);
      EXPECT_EQ(first_poison(info.dtype, data.data(), stride, 40), -1);
      const auto at = [&](std::int64_t i) {
        return data.data() + static_cast<std::size_t>(i * stride) * info.size;
      };
      const double infinity = -HUGE_VAL;
      encode(info.dtype, &infinity, 1, at(33), 1);
      EXPECT_EQ(first_not_finite(info.dtype, data.data(), stride, 40), 33);
      fill_poison(info.dtype, at(17), 1);
      EXPECT_EQ(first_not_finite(info.dtype, data.data(), stride, 40), 17);
      EXPECT_EQ(first_poison(info.dtype, data.data(), stride, 40), 17);
      EXPECT_TRUE(is_poison(info.dtype, at(17)));
    }
  }
}

}  // namespace
}  // namespace attnguard
