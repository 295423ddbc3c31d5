// The live guard's cost, and how soon it finds what.
//
//   runtime_bench                  all of it, a few minutes
//   runtime_bench unsampled        nanoseconds of a call that is not looked at
//   runtime_bench overhead         guarded against bare, in pairs
//   runtime_bench detection        calls to detection of every known defect
//   runtime_bench soak [CALLS]     four threads, violations at a known rate
//
// Ratios are of calls that alternate inside one run.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "bench/engines.h"
#include "guard/defect/defect.h"
#include "guard/runtime/budget.h"
#include "guard/runtime/guard.h"
#include "tests/runtime/live_call.h"

namespace attnguard {
namespace {

using runtime_internal::monotonic_now;

RuntimePolicy policy_of(std::optional<double> max_overhead,
                        std::int64_t sample_every) {
  RuntimePolicy policy;
  policy.max_overhead = max_overhead;
  policy.patches.resize(1);
  policy.patches[0].sample_every = sample_every;
  return policy;
}

std::unique_ptr<Guard> guard_of(RuntimePolicy policy) {
  Result<std::unique_ptr<Guard>> guard = Guard::create(std::move(policy));
  if (guard.ok()) return std::move(guard.value());
  std::fprintf(stderr, "%s\n", guard.status().message().c_str());
  std::exit(1);
}

struct Spread {
  double low, median, high;
};

Spread spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(
        share * static_cast<double>(values.size() - 1))];
  };
  return {at(0.1), at(0.5), at(0.9)};
}

void unsampled() {
  auto guard = guard_of(policy_of(0.005, 1'000'000'000'000));
  LayerHandle layers[32];
  for (int l = 0; l < 32; ++l)
    layers[l] = guard->layer("blk." + std::to_string(l));
  std::vector<double> times;
  std::uint64_t yes = 0;
  constexpr int kCalls = 1'000'000;
  for (int round = 0; round < 21; ++round) {
    const std::int64_t start = monotonic_now();
    for (int n = 0; n < kCalls; ++n)
      yes += guard->sampled(layers[n & 31]) ? 1u : 0u;
    times.push_back(static_cast<double>(monotonic_now() - start) / kCalls);
  }
  const Spread s = spread(times);
  std::printf(
      "unsampled: %.2f ns a call (10 %% to 90 %%: %.2f to %.2f), %llu of %llu "
      "calls sampled\n",
      s.median, s.low, s.high, static_cast<unsigned long long>(yes),
      static_cast<unsigned long long>(guard->counters().calls));
}

// Blocks of bare and guarded calls in turn.
void overhead_of(const std::string& spec, const char* name, const char* line,
                 double budget, double seconds) {
  const Result<Engine> engine = open_engine(spec);
  if (!engine.ok()) {
    std::printf("%-14s %-8s skipped: %s\n", spec.c_str(), name,
                engine.status().message().c_str());
    return;
  }
  LiveCallData data(line);
  // Half of the run is bare: of the whole the guard gets half of the share, and
  // so the share of the half that is guarded.
  auto guard = guard_of(policy_of(budget / 2, 1));
  LayerOptions options;
  options.numerics = engine.value().capabilities.numerics;
  const AttentionCallback bare = engine.value().run;
  const AttentionCallback guarded =
      guard->wrap(bare, guard->layer("blk.0.attn", options));
  const AttentionCall call = data.call();
  const auto timed = [&](const AttentionCallback& run, int calls) {
    const std::int64_t start = monotonic_now();
    for (int n = 0; n < calls; ++n)
      if (!run(call).ok()) std::exit(1);
    return static_cast<double>(monotonic_now() - start);
  };
  timed(bare, 2);
  const int block =
      std::max(1, static_cast<int>(20e6 / std::max(timed(bare, 1), 1.0)));
  std::vector<double> ratios;
  double all_guarded = 0;
  const std::int64_t end =
      monotonic_now() + static_cast<std::int64_t>(seconds * 1e9);
  while (monotonic_now() < end) {
    const double a = timed(bare, block), b = timed(guarded, block);
    ratios.push_back(b / a - 1);
    all_guarded += b;
  }
  const GuardCounters counters = guard->counters();
  const Spread s = spread(ratios);
  std::printf(
      "%-14s %-8s %4.1f %%  own clock %6.3f %%  pairs %+6.2f %% (%+.2f to "
      "%+.2f)  %llu calls, %llu checked, %llu rows, %llu violations\n",
      spec.c_str(), name, 100 * budget,
      100 * static_cast<double>(counters.overhead_nanoseconds) / all_guarded,
      100 * s.median, 100 * s.low, 100 * s.high,
      static_cast<unsigned long long>(counters.calls),
      static_cast<unsigned long long>(counters.checked),
      static_cast<unsigned long long>(
          counters.check(LiveCheck::kRecompute).rows),
      static_cast<unsigned long long>(
          counters.check(LiveCheck::kRecompute).violations));
}

void overhead(double seconds) {
  constexpr char kPrefill[] =
      "num_heads=8 seq_len=2048 head_dim=64 mask=causal_bottom_right";
  constexpr char kDecode[] =
      "batch=8 num_heads=8 seq_len_q=1 seq_len_kv=2048 head_dim=64 "
      "mask=causal_bottom_right";
  std::printf(
      "engine         calls   budget  (8 heads, 64 channels, 2048 "
      "keys; decode: batch 8)\n");
  for (const char* spec : {"builtin:tiled", "ggml:flash"})
    for (double budget : {0.005, 0.05}) {
      overhead_of(spec, "prefill", kPrefill, budget, seconds);
      overhead_of(spec, "decode", kDecode, budget, seconds);
    }
}

// Calls of a defect until the guard says something; 0: not in `most`. Sampled
// is every call; what is looked at is what the budget leaves. Time is that of
// the calls: the engine takes as long as attention on the CPU does.
std::uint64_t calls_to_detection(const Defect& defect, std::string_view line,
                                 std::optional<double> budget,
                                 std::uint64_t most, std::string& check) {
  class First final : public ViolationSink {
   public:
    void on_violation(const Violation& violation) noexcept override {
      if (check.empty()) check = live_check_id(violation.check);
    }
    std::string check;
  };
  const Engine engine = defect_engine(defect);
  LiveCallData data{std::string(line)};
  if (!unsupported_reason(engine, data.problem).empty()) return 0;
  auto sink = std::make_shared<First>();
  RuntimePolicy policy = policy_of(budget, 1);
  policy.window = 1;
  // Passive checks alone: no second call of the kernel.
  for (LiveCheck off :
       {LiveCheck::kLaterTokens, LiveCheck::kOnes, LiveCheck::kCanary})
    policy.patches[0].severities[off] = Severity::kOff;
  auto guard = std::move(Guard::create(policy, {.sink = sink}).value());
  LayerOptions options;
  options.numerics = defect.numerics;
  const AttentionCallback guarded =
      guard->wrap(engine.run, guard->layer("a", options));
  for (std::uint64_t n = 1; n <= most; ++n) {
    if (n % 64 == 1) data.fill(n);
    if (!guarded(data.call()).ok()) return 0;
    if (sink->check.empty()) continue;
    check = sink->check;
    return n;
  }
  return 0;
}

std::string shown(std::uint64_t calls) {
  return calls == 0 ? "-" : std::to_string(calls);
}

int detection() {
  std::printf(
      "calls to detection, passive checks (each defect on its first "
      "problem that shows it)\n%-40s %10s %8s %8s  by\n",
      "defect", "no limit", "5 %", "0.5 %");
  int seen = 0, invisible = 0, undetected = 0;
  for (const Defect* defect : all_defects()) {
    if (defect->legal()) continue;
    std::string check, unused;
    std::uint64_t unlimited = 0;
    std::string_view line;
    for (std::string_view candidate : defect->shows_on) {
      if (candidate.empty() || unlimited > 0) continue;
      line = candidate;
      unlimited = calls_to_detection(*defect, line, {}, 300, check);
    }
    if (unlimited == 0) {
      ++invisible;
      std::printf("%-40s %10s %8s %8s\n", std::string(defect->id).c_str(), "-",
                  "-", "-");
      continue;
    }
    const auto at = [&](double budget) {
      return calls_to_detection(*defect, line, budget, 400'000, unused);
    };
    const std::uint64_t five = at(0.05), half = at(0.005);
    ++seen;
    undetected += five == 0 || half == 0;
    std::printf("%-40s %10s %8s %8s  %s\n", std::string(defect->id).c_str(),
                shown(unlimited).c_str(), shown(five).c_str(),
                shown(half).c_str(), check.c_str());
    std::fflush(stdout);
  }
  std::printf(
      "%d defects found, %d of them not within a budget; %d cannot be "
      "seen in outputs of single calls\n",
      seen, undetected, invisible);
  return undetected == 0 ? 0 : 1;
}

std::int64_t resident_kib() {
  std::ifstream file("/proc/self/statm");
  std::int64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE) / 1024;
}

int soak(std::uint64_t calls) {
  auto guard = guard_of(policy_of({}, 100));
  const LayerHandle layer = guard->layer("blk.0.attn");
  LiveCallData right("num_heads=2 seq_len_q=1 seq_len_kv=48 head_dim=16");
  LiveCallData wrong("num_heads=2 seq_len_q=1 seq_len_kv=48 head_dim=16");
  const Engine engine = open_engine("builtin:reference").value();
  for (LiveCallData* data : {&right, &wrong})
    if (!engine.run(data->call()).ok()) return 1;
  const double far = 1e3;
  for (std::int64_t h = 0; h < 2; ++h)
    wrong.call().output.store_row(0, h, 0, 0, 1, &far);
  std::atomic<std::uint64_t> injected{0}, sampled{0}, found{0}, invented{0};
  std::atomic<std::int64_t> warm{0};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::uint64_t n = 0; n < calls / 4; ++n) {
        if (t == 0 && n == calls / 16) warm = resident_kib();
        const bool is_wrong = uniform_below(derive_seed(t, n), 1000) == 0;
        injected += is_wrong ? 1u : 0u;
        if (!guard->sampled(layer)) continue;
        const bool says =
            guard->observe(layer, is_wrong ? wrong.call() : right.call())
                .violations > 0;
        sampled += is_wrong ? 1u : 0u;
        found += is_wrong && says ? 1u : 0u;
        invented += !is_wrong && says ? 1u : 0u;
      }
    });
  for (std::thread& thread : threads) thread.join();
  const GuardCounters counters = guard->counters();
  std::printf(
      "soak: %llu calls in 4 threads, %llu looked at; %llu of them wrong, %llu "
      "were sampled, %llu found, %llu invented; memory %lld KiB after a "
      "quarter, %lld KiB at the end\n",
      static_cast<unsigned long long>(counters.calls),
      static_cast<unsigned long long>(counters.checked),
      static_cast<unsigned long long>(injected.load()),
      static_cast<unsigned long long>(sampled.load()),
      static_cast<unsigned long long>(found.load()),
      static_cast<unsigned long long>(invented.load()),
      static_cast<long long>(warm.load()),
      static_cast<long long>(resident_kib()));
  const bool counted =
      counters.check(LiveCheck::kRecompute).violations == sampled.load();
  return found == sampled && invented == 0 && counted ? 0 : 1;
}

}  // namespace
}  // namespace attnguard

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const double seconds = argc > 2 && what == "overhead" ? atof(argv[2]) : 10;
  const std::uint64_t calls = argc > 2 && what == "soak"
                                  ? std::strtoull(argv[2], nullptr, 10)
                                  : 10'000'000;
  int failed = 0;
  if (what.empty() || what == "unsampled") attnguard::unsampled();
  if (what.empty() || what == "overhead") attnguard::overhead(seconds);
  if (what.empty() || what == "soak") failed |= attnguard::soak(calls);
  if (what.empty() || what == "detection") failed |= attnguard::detection();
  return failed;
}
