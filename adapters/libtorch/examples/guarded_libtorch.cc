// Runs a small model on LibTorch with the live guard listening. With --corrupt
// something is spoilt on purpose, before the guard sees it. Exits 1 when a
// violation was found, 0 when none was.
//
//   guarded_libtorch --corrupt scale
#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "adapters/libtorch/examples/model.h"
#include "adapters/libtorch/live_hook.h"
#include "guard/policy/runtime_options.h"
#include "guard/runtime/actions.h"

namespace {

using attnguard::ActionSink;
using attnguard::Guard;
using attnguard::LiveCheck;
using attnguard::Result;
using attnguard::libtorch::HookCounters;
using attnguard::libtorch::LiveHook;

constexpr int kMostLines = 3;  // of the log, in a minute
constexpr std::chrono::seconds kDumpWait{30};

// The guard's log is what the program prints.
attnguard::ActionHooks printing() {
  return {.log = [](std::string_view line) {
    std::printf("%.*s\n", static_cast<int>(line.size()), line.data());
  }};
}

struct Settings {
  attnguard::examples::ModelOptions model;
  std::string corrupt = "none";
  double probability = 1;
  int sample = 1;
  int rows = 8;
};

bool parse(int argc, char** argv, Settings& settings, int& code) {
  CLI::App app("Runs a small model with the live guard inside LibTorch.");
  const std::vector<std::string> names(
      std::begin(attnguard::examples::kCorruptions),
      std::end(attnguard::examples::kCorruptions));
  app.add_option("--corrupt", settings.corrupt, "what is spoilt")
      ->check(CLI::IsMember(names));
  app.add_option("--steps", settings.model.steps, "tokens that are decoded");
  app.add_option("--seed", settings.model.seed, "of weights and prompt");
  app.add_flag("--bf16", settings.model.half, "bf16 instead of fp32");
  app.add_option("--sample", settings.sample, "one call in so many")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--rows", settings.rows, "rows that are computed again");
  app.add_option("--probability", settings.probability,
                 "with which LibTorch calls back")
      ->check(CLI::Range(0.0, 1.0));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    code = app.exit(error) == 0 ? 0 : 2;
    return false;
  }
  return true;
}

attnguard::RuntimePolicy policy_of(const Settings& settings) {
  attnguard::RuntimePolicy policy;
  policy.max_overhead.reset();
  attnguard::RuntimePatch patch;
  patch.sample_every = settings.sample;
  patch.rows = settings.rows;
  patch.severity_actions[attnguard::Severity::kError] =
      attnguard::kActionCount | attnguard::kActionLog;
  policy.patches.push_back(patch);
  policy.log_per_minute = kMostLines;
  return policy;
}

void print_line(std::string_view name, std::uint64_t calls, std::uint64_t seen,
                std::uint64_t violations) {
  if (calls == 0) return;
  std::printf("  %-13s %6llu calls %8llu seen %6llu violations\n",
              std::string(name).c_str(), static_cast<unsigned long long>(calls),
              static_cast<unsigned long long>(seen),
              static_cast<unsigned long long>(violations));
}

std::uint64_t print_counters(const attnguard::GuardCounters& guard,
                             const HookCounters& hook, std::uint64_t told) {
  std::printf("%llu attention calls, %llu looked at, %llu judged\n",
              static_cast<unsigned long long>(hook.attention),
              static_cast<unsigned long long>(hook.sampled),
              static_cast<unsigned long long>(hook.observed));
  if (hook.declined > 0)
    std::printf("%llu not judged: %s\n",
                static_cast<unsigned long long>(hook.declined),
                hook.last_reason.c_str());
  std::uint64_t violations = 0;
  for (const LiveCheck check : attnguard::all_live_checks()) {
    // What the hook reported is printed by the hook's own checks.
    if (check == LiveCheck::kEngine) continue;
    const attnguard::CheckCounters& its = guard.check(check);
    violations += its.violations;
    print_line(attnguard::live_check_id(check), its.runs, its.rows,
               its.violations);
  }
  print_line("mask", hook.mask.runs, hook.mask.judged, hook.mask.violations);
  print_line("weights", hook.weights.runs, hook.weights.judged,
             hook.weights.violations);
  return violations + told;
}

int fail(const std::string& message) {
  std::fprintf(stderr, "guarded_libtorch: %s\n", message.c_str());
  return 3;
}

int run(const Settings& settings) {
  attnguard::RuntimePolicy policy = policy_of(settings);
  const attnguard::RuntimeOptionsParse given =
      attnguard::apply_runtime_environment(policy);
  for (const std::string& error : given.errors)
    std::fprintf(stderr, "%s: %s\n", "guarded_libtorch", error.c_str());
  if (!given.ok()) return 2;
  if (given.help) {
    std::fputs(attnguard::runtime_options_help(policy).c_str(), stdout);
    return 0;
  }
  const auto sink =
      std::make_shared<ActionSink>(policy, "libtorch", printing());
  Result<std::unique_ptr<Guard>> guard =
      Guard::create(std::move(policy), {.sink = sink});
  if (!guard.ok()) return fail(guard.status().message());
  attnguard::examples::start_corruption(settings.corrupt, 1,
                                        settings.corrupt == "mask-bit" ? 1 : 2);
  attnguard::libtorch::LiveHookOptions options;
  options.layers = attnguard::examples::kModelLayers;
  options.probability = settings.probability;
  std::atomic<std::uint64_t> told{0};  // What the hook's own checks find.
  options.on_finding = [&told](const std::string&, const std::string&,
                               const std::string&) { ++told; };
  options.mask = attnguard::Mask::parse("causal_bottom_right").value();
  Result<std::unique_ptr<LiveHook>> hook =
      LiveHook::start(*guard.value(), options);
  if (!hook.ok()) return fail(hook.status().message());
  const attnguard::examples::ModelResult result =
      attnguard::examples::run_model(settings.model);
  if (!result.failure.empty()) return fail(result.failure);
  if (!sink->flush(kDumpWait)) return fail("a dump is still not written");
  const std::string done = attnguard::examples::corruption_done();
  if (!done.empty())
    std::printf("corrupted: %s\n", done.c_str());
  else if (settings.corrupt != "none")
    return fail("nothing was corrupted: the model gave no occasion");
  std::printf("served %lld tokens\n", static_cast<long long>(result.tokens));
  const std::uint64_t violations =
      print_counters(guard.value()->counters(), hook.value()->counters(), told);
  std::printf("%s\n", violations > 0 ? "violation" : "no violation");
  return violations > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  int code = 0;
  if (!parse(argc, argv, settings, code)) return code;
  return run(settings);
}
