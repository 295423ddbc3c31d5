#include "guard/problem/placement.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/problems.h"

namespace attnguard {
namespace {

ConstTensorView view_of(const Placement& placement) {
  return {nullptr, Dtype::kFp64, placement.shape, placement.strides,
          placement.tokens.get()};
}

// The offsets of all elements, entry by entry.
std::multiset<std::int64_t> offsets_of(const Placement& placement) {
  const ConstTensorView view = view_of(placement);
  std::multiset<std::int64_t> offsets;
  for (std::int64_t b = 0; b < placement.entries(); ++b)
    for (std::int64_t h = 0; h < placement.shape[1]; ++h)
      for (std::int64_t s = 0; s < placement.slots[static_cast<std::size_t>(b)];
           ++s)
        for (std::int64_t c = 0; c < placement.shape[3]; ++c)
          offsets.insert(view.offset(b, h, s, c));
  return offsets;
}

// Every element of the buffer belongs to one place.
void expect_exact_cover(const std::string& line, TensorRole role) {
  const Placement placement = place_tensor(problem_of(line), role);
  const auto offsets = offsets_of(placement);
  ASSERT_FALSE(offsets.empty()) << line;
  EXPECT_EQ(*offsets.begin(), 0) << line;
  EXPECT_EQ(*offsets.rbegin(), placement.extent - 1) << line;
  EXPECT_EQ(static_cast<std::int64_t>(
                std::set<std::int64_t>(offsets.begin(), offsets.end()).size()),
            placement.extent)
      << line;
  EXPECT_EQ(static_cast<std::int64_t>(offsets.size()), placement.extent)
      << line;
}

TEST(Placement, PackedTokensFollowOneAnother) {
  const Problem problem = problem_of(
      "batch=3 num_heads=2 seq_len=4,0,3 head_dim=8 packed=true "
      "packed_padding=2 layout=bshd");
  const Placement query = place_tensor(problem, TensorRole::kQuery);
  EXPECT_EQ(query.slots, (std::vector<std::int64_t>{4, 0, 3, 2}));
  EXPECT_EQ(query.extent, 9 * 2 * 8);
  const ConstTensorView view = view_of(query);
  // [token, head, channel]: a token is 16 elements.
  EXPECT_EQ(view.offset(0, 0, 3), 3 * 16);
  EXPECT_EQ(view.offset(2, 1, 0, 5), 4 * 16 + 8 + 5);
  EXPECT_EQ(view.offset(3, 0, 1), 8 * 16) << "padding is the last entry";
  EXPECT_EQ(cumulative_lengths(problem, problem.seq_len_q),
            (std::vector<std::int32_t>{0, 4, 4, 7}));
}

TEST(Placement, ReadingOnInAPackedTensorMeetsTheNextSequence) {
  const Placement key = place_tensor(
      problem_of("batch=2 num_heads=1 seq_len=2,5 head_dim=4 packed=true"),
      TensorRole::kKey);
  const ConstTensorView view = view_of(key);
  EXPECT_EQ(view.offset(0, 0, 2), view.offset(1, 0, 0));
  EXPECT_EQ(view.offset(1, 0, 4), 6 * 4);
}

TEST(Placement, EveryPackedAndPagedElementBelongsToOnePlace) {
  for (const char* layout : {"bhsd", "bshd"}) {
    const std::string base =
        "batch=3 num_heads=4 num_kv_heads=2 seq_len_q=5,1,3 "
        "seq_len_kv=33,16,21 head_dim_qk=6 head_dim_v=4 layout=" +
        std::string(layout);
    for (TensorRole role : {TensorRole::kQuery, TensorRole::kKey,
                            TensorRole::kValue, TensorRole::kOutput})
      expect_exact_cover(base + " packed=true packed_padding=3", role);
    for (int block_size : {1, 2, 16, 64, 256})
      for (TensorRole role : {TensorRole::kKey, TensorRole::kValue})
        expect_exact_cover(base + " block_size=" + std::to_string(block_size),
                           role);
  }
}

TEST(Placement, PagesHoldTheRestOfTheirBlocksAndSpareOnes) {
  const Placement key = place_tensor(
      problem_of("batch=2 num_heads=1 seq_len_q=1 seq_len_kv=33,16 head_dim=4 "
                 "block_size=16"),
      TensorRole::kKey);
  EXPECT_EQ(key.slots, (std::vector<std::int64_t>{48, 16, 16 * kSpareBlocks}));
  EXPECT_EQ(key.extent, (3 + 1 + kSpareBlocks) * 16 * 4);
  ASSERT_NE(key.tokens, nullptr);
  EXPECT_EQ(key.tokens->block_size, 16);
  EXPECT_EQ(key.tokens->width, 4) << "one entry more than the longest needs";
  // What a row does not use belongs to nobody.
  const auto& table = key.tokens->table;
  std::set<std::int32_t> spare(table.begin() + 8, table.begin() + 11);
  EXPECT_EQ(spare.size(), 3u);
  EXPECT_TRUE(spare.count(table[3]));
  EXPECT_TRUE(spare.count(table[4 + 1]));
  // Shuffled: the blocks of an entry are not where a kernel that ignores the
  // table looks.
  EXPECT_NE((std::vector<std::int32_t>(table.begin(), table.begin() + 3)),
            (std::vector<std::int32_t>{0, 1, 2}));
}

TEST(Placement, ASharedPrefixIsTheSameBlocks) {
  const Problem problem = problem_of(
      "batch=2 num_heads=1 seq_len_q=1 seq_len_kv=40,33 head_dim=4 "
      "block_size=8 shared_prefix=16");
  const Placement key = place_tensor(problem, TensorRole::kKey);
  const ConstTensorView keys = view_of(key);
  for (std::int64_t j = 0; j < 16; ++j)
    EXPECT_EQ(keys.offset(0, 0, j), keys.offset(1, 0, j)) << j;
  for (std::int64_t j = 16; j < 33; ++j)
    EXPECT_NE(keys.offset(0, 0, j), keys.offset(1, 0, j)) << j;
  EXPECT_EQ(problem.owner(1, 15), 0);
  EXPECT_EQ(problem.owner(1, 16), 1);
}

TEST(Placement, AValueInTheKeyHasTheKeysStrides) {
  const Problem problem = problem_of(
      "num_heads=2 num_kv_heads=1 seq_len=5 head_dim_qk=12 "
      "head_dim_v=8 value_in_key=true");
  EXPECT_EQ(problem.strides(TensorRole::kValue),
            problem.strides(TensorRole::kKey));
  EXPECT_EQ(problem.extent(TensorRole::kValue),
            problem.extent(TensorRole::kKey));
  EXPECT_EQ(problem.shape(TensorRole::kValue)[3], 8);
  EXPECT_EQ(problem.score_channels(), 4);
}

}  // namespace
}  // namespace attnguard
