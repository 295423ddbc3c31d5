#include "guard/probe/address_code.h"

#include <gtest/gtest.h>

#include "tests/support/engines.h"

namespace attnguard {
namespace {

std::vector<double> row_of(const AddressCode& code, const KeyAddress& key) {
  std::vector<double> row(static_cast<std::size_t>(code.columns()));
  code.value_row(key.batch, key.kv_head, key.kv_index, row.data());
  return row;
}

TEST(AddressCode, DecodesEveryKeyOfAProblemAtAnyNumberOfColumns) {
  const Problem problem =
      problem_of("batch=3 num_heads=5 num_kv_heads=5 seq_len=37 head_dim=64");
  for (std::int64_t columns : {2, 3, 5, 10, 11, 63, 130}) {
    const auto code = AddressCode::make(problem, columns);
    ASSERT_NE(code, nullptr) << columns;
    for (std::int64_t b = 0; b < 3; ++b)
      for (std::int64_t g = 0; g < 5; ++g)
        for (std::int64_t j = 0; j < 37; ++j) {
          const KeyAddress key{b, g, j};
          EXPECT_EQ(code->decode(row_of(*code, key).data(), 0.0), key);
        }
  }
}

TEST(AddressCode, IsRefusedWhenTheAddressDoesNotFitEightBitsAColumn) {
  const Problem problem = problem_of("seq_len=1000 head_dim=64");
  EXPECT_EQ(AddressCode::make(problem, 1), nullptr);
  EXPECT_NE(AddressCode::make(problem, 2), nullptr);
  EXPECT_EQ(AddressCode::make(problem, 0), nullptr);
}

TEST(AddressCode, ValuesAreExactInTheNarrowestDtype) {
  const Problem problem = problem_of("seq_len=16384 head_dim=64");
  for (std::int64_t columns : {2, 4, 63}) {
    const auto code = AddressCode::make(problem, columns);
    for (std::int64_t j : {0, 1, 127, 8191, 16383})
      for (double x : row_of(*code, {0, 0, j}))
        EXPECT_EQ(quantize(Dtype::kBf16, x), x);
  }
}

TEST(AddressCode, TellsAMixtureOfTwoKeysFromASingleOne) {
  const Problem problem = problem_of("seq_len=64 head_dim=64");
  const auto code = AddressCode::make(problem, 63);
  std::vector<double> a = row_of(*code, {0, 0, 5});
  const std::vector<double> b = row_of(*code, {0, 0, 41});
  for (std::size_t c = 0; c < a.size(); ++c) a[c] = 0.5 * a[c] + 0.5 * b[c];
  EXPECT_EQ(code->decode(a.data(), 0.45), std::nullopt);
  a[0] = NAN;
  EXPECT_EQ(code->decode(a.data(), 0.45), std::nullopt);
}

}  // namespace
}  // namespace attnguard
