// Many threads, threads that end, and processes that fork.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "guard/runtime/budget.h"
#include "guard/runtime/guard.h"
#include "tests/runtime/live_call.h"
#include "tests/runtime/recording_sink.h"
#include "tests/support/engines.h"

namespace attnguard {
namespace {

class CountingSink final : public ViolationSink {
 public:
  void on_violation(const Violation&) noexcept override { ++violations; }
  void after_fork_in_child() noexcept override { ++forks; }
  std::atomic<std::uint64_t> violations{0};
  std::atomic<int> forks{0};
};

// Calls whose outputs were computed once, right and wrong.
struct Prepared {
  Prepared() {
    EXPECT_TRUE(builtin("reference").run(right.call()).ok());
    EXPECT_TRUE(builtin("reference").run(wrong.call()).ok());
    const double far = 1e6;
    wrong.call().output.store_row(0, 0, 0, 0, 1, &far);
  }
  LiveCallData right{"seq_len_q=1 seq_len_kv=24 head_dim=8"};
  LiveCallData wrong{"seq_len_q=1 seq_len_kv=24 head_dim=8"};
};

// A soak in miniature: violations at a known rate in four threads. Each that
// was sampled is counted, and no other.
TEST(LiveThreads, EverySampledViolationIsCountedAndNoOther) {
  RuntimePolicy policy = look_always(
      {LiveCheck::kFinite, LiveCheck::kValueRange, LiveCheck::kRecompute});
  policy.patches[0].sample_every = 10;
  policy.patches[0].rows = 1;
  auto sink = std::make_shared<CountingSink>();
  auto guard = std::move(Guard::create(policy, {.sink = sink}).value());
  const LayerHandle layer = guard->layer("blk.3.attn");
  Prepared prepared;
  std::atomic<std::uint64_t> sampled{0}, injected{0};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const AttentionCall right = prepared.right.call();
      const AttentionCall wrong = prepared.wrong.call();
      for (std::uint64_t n = 0; n < 50000; ++n) {
        const bool is_wrong = uniform_below(derive_seed(t, n), 100) == 0;
        if (!guard->sampled(layer)) continue;
        ++sampled;
        injected += is_wrong;
        const Observed seen = guard->observe(layer, is_wrong ? wrong : right);
        EXPECT_EQ(seen.violations, is_wrong ? 2 : 0);
      }
    });
  for (std::thread& thread : threads) thread.join();
  const GuardCounters counters = guard->counters();
  EXPECT_EQ(counters.calls, 200000u);
  EXPECT_EQ(counters.sampled, sampled.load());
  EXPECT_EQ(counters.checked, sampled.load());
  EXPECT_GT(injected.load(), 100u);
  EXPECT_EQ(counters.check(LiveCheck::kRecompute).violations, injected.load());
  EXPECT_EQ(counters.check(LiveCheck::kValueRange).violations, injected.load());
  EXPECT_EQ(counters.check(LiveCheck::kFinite).violations, 0u);
  EXPECT_EQ(sink->violations.load(), 2 * injected.load());
  ASSERT_EQ(counters.groups.size(), 1u);
  EXPECT_EQ(counters.groups[0].group, "blk.*.attn");
  EXPECT_EQ(counters.groups[0]
                .violations[static_cast<std::size_t>(LiveCheck::kRecompute)],
            injected.load());
  EXPECT_EQ(counters.threads, 0u) << "they ended";
}

TEST(LiveThreads, ThreadsThatEndLeaveTheirCountsAndNothingElse) {
  auto guard =
      std::move(Guard::create(look_always({LiveCheck::kFinite})).value());
  const LayerHandle layer = guard->layer("a");
  for (int n = 0; n < 300; ++n)
    std::thread([&] {
      for (int call = 0; call < 10; ++call) guard->sampled(layer);
    }).join();
  EXPECT_EQ(guard->counters().calls, 3000u);
  EXPECT_EQ(guard->counters().threads, 0u);
}

// The thread does nothing any more; snapshots are taken by another.
TEST(LiveThreads, TheWindowOfAnIdleThreadIsForgotten) {
  RuntimePolicy policy = look_always({LiveCheck::kFinite});
  policy.max_overhead = 0.01;
  policy.window = 0.5;
  auto guard = std::move(Guard::create(policy).value());
  std::atomic<bool> charged{false}, stop{false};
  double while_busy = 0;
  std::thread idle([&] {
    // Where the thread is put aside for a window, it tries again.
    for (int n = 0; n < 1000 && while_busy == 0; ++n) {
      guard->charge(50'000'000);
      while_busy = guard->counters().window_overhead;
    }
    charged = true;
    while (!stop) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  const auto give_up =
      std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!charged || guard->counters().window_overhead > 0) {
    if (std::chrono::steady_clock::now() > give_up) {
      ADD_FAILURE() << "still " << guard->counters().window_overhead;
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(guard->counters().threads, 1u) << "it is idle, not gone";
  stop = true;
  idle.join();
  EXPECT_GT(while_busy, 0);
}

// Owner and reader at once, on a clock that runs through a window in no time.
TEST(LiveThreads, AWindowIsReadWhileItsOwnerSpends) {
  using runtime_internal::Budget;
  constexpr std::int64_t kStep = 1000;  // 1 ns of it is spent
  constexpr std::int64_t kFirst = 1000,
                         kLast = 200'000;  // The first: a window.
  Budget budget(-1, 1e-3);
  budget.start(0);
  std::atomic<std::int64_t> now{kFirst * kStep};
  std::thread owner([&] {
    for (std::int64_t n = kFirst; n <= kLast; ++n) {
      budget.spend(n * kStep, 1);
      now = n * kStep;
    }
  });
  const Budget& seen = budget;
  while (now < kLast * kStep) {
    const double used = seen.used(now);
    EXPECT_GE(used, 0);
    EXPECT_LT(used, 1.1e-3);
  }
  owner.join();
  EXPECT_NEAR(seen.used(now), 1e-3, 5e-5);
}

TEST(LiveThreads, LayersMayComeWhileOthersAreCalled) {
  auto guard =
      std::move(Guard::create(look_always({LiveCheck::kFinite})).value());
  std::atomic<bool> stop{false};
  const LayerHandle first = guard->layer("first");
  std::thread caller([&] {
    while (!stop) guard->sampled(first);
  });
  for (int n = 0; n < 1000; ++n) {
    const LayerHandle layer = guard->layer("blk." + std::to_string(n));
    EXPECT_TRUE(guard->sampled(layer));
    static_cast<void>(guard->counters());
  }
  stop = true;
  caller.join();
  EXPECT_EQ(guard->layer("blk.999").index, 1000u);
  EXPECT_EQ(guard->layer_name({500}), "blk.499");
}

TEST(LiveThreads, SeveralGuardsInOneThreadKeepApart) {
  auto a = std::move(Guard::create(look_always({})).value());
  auto b = std::move(Guard::create(look_always({})).value());
  const LayerHandle layer = a->layer("x");
  ASSERT_EQ(b->layer("x").index, layer.index);
  for (int n = 0; n < 100; ++n) {
    a->sampled(layer);
    if (n % 2 == 0) b->sampled(layer);
  }
  EXPECT_EQ(a->counters().calls, 100u);
  EXPECT_EQ(b->counters().calls, 50u);
  b.reset();
  auto c = std::move(Guard::create(look_always({})).value());
  c->layer("x");
  c->sampled(layer);
  EXPECT_EQ(c->counters().calls, 1u);
}

TEST(LiveThreads, UnknownLayersAreNotSampled) {
  auto guard = std::move(Guard::create(look_always({})).value());
  EXPECT_FALSE(guard->sampled({12345}));
  EXPECT_EQ(guard->observe({12345}, AttentionCall{}).checks, 0);
}

// Run in the child, whose exit code says what went wrong.
int in_child(Guard& guard, LayerHandle layer, CountingSink& sink,
             Prepared& prepared) {
  if (guard.counters().calls != 0) return 2;
  if (sink.forks != 1) return 3;
  for (int n = 0; n < 50; ++n) {
    if (!guard.sampled(layer)) return 4;
    if (guard.observe(layer, prepared.wrong.call()).violations == 0) return 5;
  }
  if (guard.counters().calls != 50) return 6;
  if (guard.counters().check(LiveCheck::kRecompute).violations != 50) return 7;
  guard.layer("new in the child");
#if defined(__SANITIZE_THREAD__)
  return 0;  // It knows no threads that start after a fork.
#else
  bool thread_ok = false;
  std::thread([&] {
    thread_ok = guard.sampled(layer) &&
                guard.observe(layer, prepared.right.call()).violations == 0;
  }).join();
  return thread_ok && guard.counters().calls == 51 ? 0 : 8;
#endif
}

TEST(LiveThreads, AForkedChildStartsAfreshWhileThreadsAreBusy) {
  auto sink = std::make_shared<CountingSink>();
  auto guard = std::move(
      Guard::create(look_always({LiveCheck::kRecompute}), {.sink = sink})
          .value());
  const LayerHandle layer = guard->layer("a");
  Prepared prepared;
  std::atomic<bool> stop{false};
  std::vector<std::thread> busy;
  for (int t = 0; t < 2; ++t)
    busy.emplace_back([&] {
      while (!stop)
        if (guard->sampled(layer)) guard->observe(layer, prepared.right.call());
    });
  std::thread adds_layers([&] {
#if !defined(__SANITIZE_ADDRESS__)
    // Not there: in a child, the locks of its allocator stay as other threads
    // held them at the fork.
    for (int n = 0; !stop && n < 2000; ++n) {
      guard->layer("layer " + std::to_string(n));
      static_cast<void>(guard->counters());
    }
#endif
  });
  guard->sampled(layer);
  // Threads allocate when they start.
  while (guard->counters().calls < 1000) std::this_thread::yield();
  for (int n = 0; n < 20; ++n) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(20);  // A lock that nobody releases ends the child.
      _exit(in_child(*guard, layer, *sink, prepared));
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  stop = true;
  for (std::thread& thread : busy) thread.join();
  adds_layers.join();
  EXPECT_EQ(sink->forks, 0);
  EXPECT_GT(guard->counters().calls, 0u);
}

}  // namespace
}  // namespace attnguard
