#include "guard/problem/key_ranges.h"

#include <gtest/gtest.h>

#include <bitset>

#include "guard/base/rng.h"

namespace attnguard {
namespace {

constexpr std::int64_t kKeys = 12;
using Bits = std::bitset<kKeys>;

KeyRanges ranges_of(const Bits& bits) {
  KeyRanges ranges;
  for (std::int64_t j = 0; j < kKeys; ++j)
    if (bits[static_cast<std::size_t>(j)]) ranges.append(j, j + 1);
  return ranges;
}

TEST(KeyRanges, MergesIntervalsThatTouchOrOverlap) {
  KeyRanges ranges;
  ranges.append(2, 5);
  ranges.append(5, 7);
  ranges.append(6, 6);
  ranges.append(6, 9);
  ranges.append(11, 12);
  EXPECT_EQ(ranges.ranges(), (std::vector<KeyRange>{{2, 9}, {11, 12}}));
  EXPECT_EQ(ranges.count(), 8);
  EXPECT_EQ(ranges.first(), 2);
  EXPECT_EQ(ranges.last(), 11);
}

TEST(KeyRanges, IgnoresEmptyIntervals) {
  KeyRanges ranges;
  ranges.append(3, 3);
  ranges.append(5, 4);
  ranges.append(0, -2);
  EXPECT_TRUE(ranges.empty());
  EXPECT_EQ(ranges.count(), 0);
  EXPECT_FALSE(ranges.contains(3));
  EXPECT_EQ(ranges.nth(0), -1);
}

TEST(KeyRanges, ClearsForReuse) {
  KeyRanges ranges;
  ranges.append(3, 9);
  ranges.clear();
  ranges.append(0, 1);
  EXPECT_EQ(ranges.ranges(), (std::vector<KeyRange>{{0, 1}}));
}

TEST(KeyRanges, AnswersLikeTheSetOfItsKeys) {
  for (std::uint64_t pattern = 0; pattern < (1u << kKeys); ++pattern) {
    const Bits bits(pattern);
    const KeyRanges ranges = ranges_of(bits);
    ASSERT_EQ(ranges.count(), static_cast<std::int64_t>(bits.count()));
    ASSERT_EQ(ranges.empty(), bits.none());
    std::int64_t n = 0;
    for (std::int64_t j = 0; j < kKeys; ++j) {
      const bool in = bits[static_cast<std::size_t>(j)];
      ASSERT_EQ(ranges.contains(j), in);
      if (!in) continue;
      if (n == 0) {
        ASSERT_EQ(ranges.first(), j);
      }
      ASSERT_EQ(ranges.nth(n++), j);
    }
    ASSERT_EQ(ranges.nth(n), -1);
    ASSERT_FALSE(ranges.contains(-1));
    ASSERT_FALSE(ranges.contains(kKeys));
  }
}

TEST(KeyRanges, IntersectAndUniteLikeSets) {
  KeyRanges out;
  out.append(0, 99);  // what it held before must not matter
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const Bits a(mix_bits(i) & mix_bits(i + 1)), b(mix_bits(~i));
    intersect(ranges_of(a), ranges_of(b), out);
    ASSERT_EQ(out, ranges_of(a & b)) << a << " and " << b;
    unite(ranges_of(a), ranges_of(b), out);
    ASSERT_EQ(out, ranges_of(a | b)) << a << " or " << b;
  }
}

}  // namespace
}  // namespace attnguard
