#include "guard/probe/census.h"

#include <gtest/gtest.h>

#include "tests/support/engines.h"

namespace attnguard {
namespace {

class CensusTest : public testing::Test {
 protected:
  Problem problem_ = problem_of(
      "batch=2 num_heads=2 seq_len=400 head_dim=64 mask=causal_top_left");
  CensusCode code_{problem_, 63, 11};

  // The mean of the codes of `keys`, as a kernel with equal weights gives it.
  std::vector<double> mean_of(const std::vector<std::int64_t>& keys) const {
    std::vector<double> mean(63, 0.0), row(63);
    for (std::int64_t key : keys) {
      code_.value_row(1, 1, key, row.data());
      for (std::size_t c = 0; c < row.size(); ++c) mean[c] += row[c];
    }
    for (double& x : mean) x /= static_cast<double>(keys.size());
    return mean;
  }

  static std::vector<std::int64_t> keys_below(std::int64_t end) {
    std::vector<std::int64_t> keys;
    for (std::int64_t j = 0; j < end; ++j) keys.push_back(j);
    return keys;
  }
};

TEST_F(CensusTest, SumsOverAnyPrefixStayWithinTheBound) {
  std::vector<double> sum(63);
  for (std::int64_t end = 1; end <= 400; ++end) {
    KeyRanges keys;
    keys.append(0, end);
    code_.expected_sum(0, 1, keys, sum.data());
    for (double s : sum) EXPECT_LE(std::abs(s), CensusCode::kWalkBound);
  }
}

TEST_F(CensusTest, ExpectedSumsAreTheSumsOfTheCodes) {
  KeyRanges keys;
  keys.append(3, 40);
  keys.append(77, 101);
  std::vector<double> sum(63);
  std::vector<double> total(63, 0.0), row(63);
  for (const KeyRange& range : keys.ranges())
    for (std::int64_t j = range.begin; j < range.end; ++j) {
      code_.value_row(1, 0, j, row.data());
      for (std::size_t c = 0; c < 63; ++c) {
        EXPECT_EQ(std::abs(row[c]), 1.0);
        total[c] += row[c];
      }
    }
  code_.expected_sum(1, 0, keys, sum.data());
  for (std::size_t c = 0; c < 63; ++c) EXPECT_EQ(sum[c], total[c]);
}

TEST_F(CensusTest, NamesALeakedADroppedAndASwappedKey) {
  KeyRanges allowed;
  allowed.append(0, 200);
  std::vector<std::int64_t> keys = keys_below(200);
  keys.push_back(317);
  auto why = code_.explain(1, 1, allowed, mean_of(keys).data());
  EXPECT_TRUE(why.found);
  EXPECT_EQ(why.leaked, 317);
  EXPECT_EQ(why.missing, -1);

  keys = keys_below(200);
  keys.erase(keys.begin() + 123);
  why = code_.explain(1, 1, allowed, mean_of(keys).data());
  EXPECT_EQ(why.leaked, -1);
  EXPECT_EQ(why.missing, 123);

  keys.push_back(250);
  why = code_.explain(1, 1, allowed, mean_of(keys).data());
  EXPECT_EQ(why.leaked, 250);
  EXPECT_EQ(why.missing, 123);
}

TEST_F(CensusTest, NoAlignedTileSumsToZeroInAllColumns) {
  std::vector<double> sum(63);
  for (std::int64_t tile : {2, 4, 8, 16, 32, 64, 128})
    for (std::int64_t begin = 0; begin + tile <= 400; begin += tile) {
      KeyRanges keys;
      keys.append(begin, begin + tile);
      code_.expected_sum(0, 0, keys, sum.data());
      EXPECT_TRUE(
          std::any_of(sum.begin(), sum.end(), [](double s) { return s != 0; }));
    }
}

TEST(CensusError, LeavesAKeyVisibleInBf16At16384Keys) {
  const Numerics numerics;
  EXPECT_LT(census_error(numerics, Dtype::kBf16, 16384, 16384).at(3), 0.05);
  Numerics narrow;
  narrow.probability = Dtype::kBf16;
  EXPECT_LT(census_error(narrow, Dtype::kBf16, 16384, 16384).at(6), 0.1);
  EXPECT_GT(census_error(narrow, Dtype::kBf16, 16384, 16384).at(100), 0.4);
}

// Under ALiBi the keys hold their position, which quantised keys blur.
TEST(CensusScores, CountTheStorageOfKeysUnderAlibi) {
  std::string why_not;
  for (const char* alibi : {"", " alibi_max_bias=8"}) {
    const Problem problem =
        problem_of(std::string("num_heads=2 seq_len=100 head_dim=64 "
                               "mask=causal_bottom_right") +
                   alibi);
    Numerics numerics;
    const auto exact = CensusScores::make(problem, numerics, 3, why_not);
    numerics.key_error = 1.0 / 254;
    const auto stored = CensusScores::make(problem, numerics, 3, why_not);
    ASSERT_TRUE(exact && stored) << why_not;
    // One digit of 0 to 99, stored to within 99/254 of it.
    EXPECT_NEAR(stored->score_error(0) - exact->score_error(0),
                problem.alibi_slope(0) * 99 / 254, 1e-12);
    EXPECT_LT(exact->score_error(0), 1e-4);
  }
}

}  // namespace
}  // namespace attnguard
