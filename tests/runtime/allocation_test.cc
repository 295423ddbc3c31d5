// Nothing is allocated on the hot path after warm-up: operator new is replaced
// by one that counts, for the whole test binary.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "guard/runtime/guard.h"
#include "tests/runtime/live_call.h"
#include "tests/runtime/recording_sink.h"
#include "tests/support/engines.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// The sanitizers have an operator new of their own.
#define ATTNGUARD_TEST_COUNTS_ALLOCATIONS 0
#else
#define ATTNGUARD_TEST_COUNTS_ALLOCATIONS 1
#endif

namespace {
thread_local std::size_t allocations = 0;
}  // namespace

#if ATTNGUARD_TEST_COUNTS_ALLOCATIONS
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
#endif

namespace attnguard {
namespace {

class Allocations : public ::testing::TestWithParam<std::string> {};

TEST_P(Allocations, NoneAfterWarmUp) {
  if (!ATTNGUARD_TEST_COUNTS_ALLOCATIONS)
    GTEST_SKIP() << "operator new is the sanitizer's";
  RuntimePolicy policy =
      look_always({LiveCheck::kFinite, LiveCheck::kValueRange,
                   LiveCheck::kSingleKey, LiveCheck::kRecompute});
  policy.patches[0].sample_every = 2;
  auto guard = std::move(Guard::create(policy).value());
  const LayerHandle layers[] = {guard->layer("a"), guard->layer("b")};
  LiveCallData data(GetParam());
  ASSERT_TRUE(builtin("reference").run(data.call()).ok());
  const AttentionCall call = data.call();
  const std::uint64_t sequences[] = {5, 6, 7, 8};
  ObserveContext context;
  context.sequences = sequences;
  const auto serve = [&](int calls) {
    for (int n = 0; n < calls; ++n) {
      const LayerHandle layer = layers[n % 2];
      guard->append(5, 40, 1);
      guard->sampled(layer);
      EXPECT_EQ(guard->observe(layer, call, context).violations, 0);
      EXPECT_EQ(guard->report(layer, {.check = "mask"}).violations, 0);
      guard->truncate(6, 3);
      guard->fork(5, 7);
    }
  };
  serve(300);
  const std::size_t before = allocations;
  serve(300);
  EXPECT_EQ(allocations, before);
  EXPECT_GT(guard->counters().check(LiveCheck::kRecompute).rows, 0u);
  EXPECT_GT(guard->counters().check(LiveCheck::kValueRange).rows, 0u);
  // The counter counts.
  const std::size_t now = allocations;
  const std::vector<int> one(5);
  EXPECT_EQ(allocations, now + 1);
}

INSTANTIATE_TEST_SUITE_P(
    Live, Allocations,
    ::testing::Values(
        "num_heads=4 num_kv_heads=2 seq_len=48 head_dim=16 "
        "mask=causal_bottom_right",
        "batch=3 num_heads=2 seq_len_q=1 seq_len_kv=70 head_dim=32 dtype=fp16 "
        "mask=causal_bottom_right+sliding_window(left=9,right=0)",
        "batch=2 num_heads=2 seq_len_q=3 seq_len_kv=50 head_dim=16 "
        "block_size=16 mask=causal_bottom_right softcap=20 sinks=0.5",
        "batch=2 num_heads=2 seq_len=20,9 head_dim=16 packed=true "
        "mask=causal_bottom_right alibi_max_bias=8"));

}  // namespace
}  // namespace attnguard
