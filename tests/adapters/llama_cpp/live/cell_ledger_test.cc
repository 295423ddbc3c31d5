#include "adapters/llama_cpp/live/cell_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "adapters/llama_cpp/live/batch_rows.h"

namespace attnguard::llama_cpp {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Token token(std::int32_t sequence, std::int32_t position) {
  Token result;
  result.sequence = sequence;
  result.position = position;
  result.sequences.set(static_cast<std::size_t>(sequence));
  return result;
}

std::vector<std::int64_t> cells(const CellLedger& ledger, std::int32_t sequence,
                                std::int64_t limit = 1000) {
  std::vector<Cell> found;
  ledger.cells_of(sequence, limit, found);
  std::vector<std::int64_t> result;
  for (const Cell& cell : found) result.push_back(cell.index);
  return result;
}

// Positions 0, 1, 2 of sequence 0 in cells 4, 1, 2, and sequence 1 in cell 0.
CellLedger filled() {
  CellLedger ledger;
  ledger.resize(8, 1);
  ledger.write(4, token(0, 0));
  ledger.write(1, token(0, 1));
  ledger.write(2, token(0, 2));
  ledger.write(0, token(1, 0));
  return ledger;
}

TEST(CellLedger, GivesCellsInTheOrderOfPositions) {
  const CellLedger ledger = filled();
  EXPECT_THAT(cells(ledger, 0), ElementsAre(4, 1, 2));
  EXPECT_THAT(cells(ledger, 1), ElementsAre(0));
  EXPECT_THAT(cells(ledger, 2), IsEmpty());
  EXPECT_THAT(cells(ledger, 0, 3), ElementsAre(1, 2));
}

TEST(CellLedger, ForgetsWhatIsOverwritten) {
  CellLedger ledger = filled();
  const std::uint32_t before = ledger.generation(1);
  ledger.write(1, token(1, 1));
  EXPECT_THAT(cells(ledger, 0), ElementsAre(4, 2));
  EXPECT_THAT(cells(ledger, 1), ElementsAre(0, 1));
  EXPECT_NE(ledger.generation(1), before);
}

TEST(CellLedger, RemovesPositionsOfOneSequence) {
  CellLedger ledger = filled();
  ledger.remove(0, 1, -1);
  EXPECT_THAT(cells(ledger, 0), ElementsAre(4));
  EXPECT_THAT(cells(ledger, 1), ElementsAre(0));
  ledger.remove(-1, -1, -1);
  EXPECT_THAT(cells(ledger, 1), IsEmpty());
}

TEST(CellLedger, CopiedTokensBelongToBoth) {
  CellLedger ledger = filled();
  ledger.copy(0, 3, 0, 2);
  EXPECT_THAT(cells(ledger, 3), ElementsAre(4, 1));
  ledger.remove(0, -1, -1);
  EXPECT_THAT(cells(ledger, 0), IsEmpty());
  EXPECT_THAT(cells(ledger, 3), ElementsAre(4, 1));
  ledger.keep(1);
  EXPECT_THAT(cells(ledger, 3), IsEmpty());
}

TEST(CellLedger, CopiesWholeStreams) {
  CellLedger ledger;
  ledger.resize(4, 3);
  ledger.write(1, token(0, 0));
  ledger.write(9, token(2, 5));
  ledger.copy(0, 2, -1, -1);
  EXPECT_THAT(cells(ledger, 2), ElementsAre(9));
  EXPECT_EQ(ledger.position(9), 0);
  EXPECT_THAT(cells(ledger, 0), ElementsAre(1));
}

TEST(CellLedger, ShiftsPositionsAndDropsWhatFallsBelowZero) {
  CellLedger ledger = filled();
  const std::uint32_t before = ledger.generation(2);
  ledger.shift(0, -1, -1, -1);
  EXPECT_THAT(cells(ledger, 0), ElementsAre(1, 2));
  EXPECT_EQ(ledger.position(2), 1);
  EXPECT_NE(ledger.generation(2), before);  // Its key is another one now.
}

TEST(CellLedger, TakesNoSequenceBeyondTheMost) {
  CellLedger ledger = filled();
  ledger.remove(kMostSequences, -1, -1);
  ledger.copy(0, kMostSequences, -1, -1);
  ledger.shift(-3, -1, -1, 1);
  EXPECT_THAT(cells(ledger, kMostSequences), IsEmpty());
  EXPECT_THAT(cells(ledger, 0), ElementsAre(4, 1, 2));
}

// --- the rows of ubatches --------------------------------------------------

struct HostBatch {
  explicit HostBatch(std::vector<std::pair<int, int>> tokens) {
    for (const auto& [sequence, position] : tokens) {
      sequences.push_back(sequence);
      positions.push_back(position);
    }
    counts.assign(tokens.size(), 1);
    for (const std::int32_t& sequence : sequences)
      pointers.push_back(&sequence);
  }
  bool begin(BatchRows& rows) const {
    return rows.begin(static_cast<std::int32_t>(positions.size()),
                      positions.data(), counts.data(), pointers.data());
  }
  std::vector<std::int32_t> sequences, positions, counts;
  std::vector<const std::int32_t*> pointers;
};

std::vector<std::pair<int, int>> taken(const BatchRows& rows) {
  std::vector<std::pair<int, int>> result;
  for (const Token& row : rows.rows())
    result.emplace_back(row.sequence, row.position);
  return result;
}

TEST(BatchRows, OneStreamIsTakenInOrder) {
  BatchRows rows;
  ASSERT_TRUE(HostBatch({{0, 0}, {1, 0}, {0, 1}}).begin(rows));
  ASSERT_TRUE(rows.take(std::vector<std::int64_t>{5, 6}, 8, 1));
  EXPECT_THAT(taken(rows), ElementsAre(std::pair(0, 0), std::pair(1, 0)));
  ASSERT_TRUE(rows.take(std::vector<std::int64_t>{7}, 8, 1));
  EXPECT_THAT(taken(rows), ElementsAre(std::pair(0, 1)));
  EXPECT_EQ(rows.taken().size(), 3u);
}

TEST(BatchRows, StreamsTakeTheirOwnSequences) {
  BatchRows rows;
  ASSERT_TRUE(HostBatch({{0, 0}, {0, 1}, {1, 0}, {1, 1}}).begin(rows));
  ASSERT_TRUE(rows.take(std::vector<std::int64_t>{0, 8}, 8, 2));
  EXPECT_THAT(taken(rows), ElementsAre(std::pair(0, 0), std::pair(1, 0)));
}

TEST(BatchRows, MoreRowsThanTokensAreAnotherBatch) {
  BatchRows rows;
  ASSERT_TRUE(HostBatch({{0, 0}}).begin(rows));
  EXPECT_FALSE(rows.take(std::vector<std::int64_t>{0, 1}, 8, 1));
  EXPECT_THAT(taken(rows), IsEmpty());
}

TEST(BatchRows, AbsentPositionsGoOn) {
  BatchRows rows;
  ASSERT_TRUE(rows.begin(2, nullptr, nullptr, nullptr));
  ASSERT_TRUE(rows.begin(1, nullptr, nullptr, nullptr));
  ASSERT_TRUE(rows.take(std::vector<std::int64_t>{2}, 8, 1));
  EXPECT_THAT(taken(rows), ElementsAre(std::pair(0, 2)));
}

TEST(BatchRows, AFailedBatchIsWhereItsSequencesGoOn) {
  BatchRows rows;
  ASSERT_TRUE(rows.begin(5, nullptr, nullptr, nullptr));
  rows.set_next_position(1, 7);
  ASSERT_TRUE(rows.begin(3, nullptr, nullptr, nullptr));
  // The third token was never taken.
  ASSERT_TRUE(rows.take(std::vector<std::int64_t>{5, 6}, 8, 1));
  rows.rewind();
  EXPECT_EQ(rows.next_position(0), 5);
  EXPECT_EQ(rows.next_position(1), 7);  // Not in the batch.
}

TEST(BatchRows, ASequenceBeyondTheMostIsRefused) {
  BatchRows rows;
  EXPECT_FALSE(HostBatch({{kMostSequences, 0}}).begin(rows));
  EXPECT_FALSE(rows.take(std::vector<std::int64_t>{0}, 8, 1));
}

}  // namespace
}  // namespace attnguard::llama_cpp
