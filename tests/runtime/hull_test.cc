// Ranges of values that are kept from step to step in decode.
#include "guard/runtime/hull.h"

#include <gtest/gtest.h>

#include "guard/runtime/guard.h"
#include "tests/runtime/live_call.h"
#include "tests/runtime/recording_sink.h"
#include "tests/support/engines.h"

namespace attnguard {
namespace {

// A sequence that is decoded token by token.
class Decode : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made =
        Guard::create(look_always({LiveCheck::kValueRange}), {.sink = sink});
    guard = std::move(made.value());
    layer = guard->layer("a");
    context.sequences = &sequence;
  }

  AttentionCall step(std::int64_t length) {
    data.problem.seq_len_kv = {length};
    AttentionCall call = data.call();
    EXPECT_TRUE(engine.run(call).ok());
    return call;
  }
  int look(const AttentionCall& call) {
    return guard->observe(layer, call, context).violations;
  }

  // Overwrites the values from a token on; what lies before stays.
  void write(std::int64_t first, double value) {
    const std::vector<double> row(8, value);
    for (std::int64_t j = first; j < 64; ++j)
      data.view(TensorRole::kValue).store_row(0, 0, j, 0, 8, row.data());
  }

  std::shared_ptr<RecordingSink> sink = std::make_shared<RecordingSink>();
  std::unique_ptr<Guard> guard;
  LayerHandle layer;
  std::uint64_t sequence = 77;
  ObserveContext context;
  LiveCallData data{
      "seq_len_q=1 seq_len_kv=64 head_dim=8 mask=causal_bottom_right"};
  Engine engine = builtin("reference");
};

TEST_F(Decode, ValuesAreReadOnceAndRemembered) {
  EXPECT_EQ(look(step(40)), 0);
  // What was read before is not read again: values that change behind the
  // guard's back are not noticed, which is what makes a step cheap.
  write(0, 100);
  EXPECT_EQ(look(step(41)), 0) << "token 40 was read: 100 is in the range";
  write(0, 200);
  EXPECT_EQ(look(step(41)), 1);
}

TEST_F(Decode, TokensWrittenOverOthersAreReadAgain) {
  EXPECT_EQ(look(step(40)), 0);
  guard->append(sequence, 0, 40);
  write(20, 50);
  guard->append(sequence, 20, 20);  // The same length, other tokens.
  EXPECT_EQ(look(step(40)), 0) << sink->text();
}

TEST_F(Decode, TruncatedAndEvictedSequencesAreReadAgain) {
  EXPECT_EQ(look(step(40)), 0);
  write(10, 70);
  guard->truncate(sequence, 10);
  EXPECT_EQ(look(step(40)), 0) << sink->text();
  write(0, -90);
  guard->evict(sequence);
  EXPECT_EQ(look(step(40)), 0) << sink->text();
}

TEST_F(Decode, AShorterSequenceIsReadAgainUnasked) {
  EXPECT_EQ(look(step(40)), 0);
  write(0, 300);
  EXPECT_EQ(look(step(39)), 0) << sink->text();
}

TEST_F(Decode, AForkKnowsWhatItsParentKnew) {
  EXPECT_EQ(look(step(40)), 0);
  const std::uint64_t child = 78;
  guard->fork(sequence, child);
  context.sequences = &child;
  AttentionCall call = step(40);
  EXPECT_EQ(look(call), 0);
  // The kept range and no other: values of 1000 would not be noticed.
  write(0, 1000);
  EXPECT_EQ(look(step(40)), 1);
  // The parent's is its own.
  context.sequences = &sequence;
  write(0, 2000);
  guard->truncate(child, 0);
  context.sequences = &child;
  EXPECT_EQ(look(step(40)), 0) << sink->text();
}

TEST_F(Decode, AnOutputOutsideOfTheKeptRangeIsFound) {
  EXPECT_EQ(look(step(40)), 0);
  const AttentionCall call = step(41);
  const double far = 99;
  call.output.store_row(0, 0, 0, 5, 1, &far);
  EXPECT_EQ(look(call), 1);
}

// Another sequence whose events show in this one's epoch.
std::uint64_t shares_slot_with(std::uint64_t sequence) {
  runtime_internal::SequenceClock clock;
  for (std::uint64_t other = sequence + 1; other < 1000000; ++other) {
    const std::uint32_t before = clock.epoch(sequence);
    clock.evict(other);
    if (clock.epoch(sequence) != before) return other;
  }
  ADD_FAILURE() << "no two sequences share a slot";
  return sequence;
}

TEST(SequenceClock, AShorterSequenceInTheSlotHidesNoOverwrite) {
  runtime_internal::SequenceClock clock;
  const std::uint64_t other = shares_slot_with(1);
  clock.append(1, 0, 600);
  clock.append(other, 0, 5);
  const std::uint32_t before = clock.epoch(1);
  clock.append(1, 500, 1);
  EXPECT_NE(clock.epoch(1), before);
}

TEST(SequenceClock, TokensThatGoOnChangeNothing) {
  runtime_internal::SequenceClock clock;
  clock.append(1, 0, 600);
  const std::uint32_t before = clock.epoch(1);
  clock.append(1, 600, 1);
  clock.append(1, 601, 4);
  EXPECT_EQ(clock.epoch(1), before);
}

TEST(HullTable, IsBoundedAndKeepsTheYoungest) {
  runtime_internal::HullTable table;
  for (std::uint64_t sequence = 0; sequence < 100000; ++sequence) {
    runtime_internal::Hull& hull = table.find(0, sequence, 0, 1, 4);
    EXPECT_EQ(hull.end, 0);
    hull.end = 10;
    EXPECT_EQ(table.find(0, sequence, 0, 1, 4).end, 10);
    EXPECT_EQ(table.find(0, sequence, 0, 2, 4).end, 0) << "another epoch";
  }
}

}  // namespace
}  // namespace attnguard
