// Serves a small model through llama.cpp with the live guard hooked in. With
// --corrupt something in the graph is spoilt on purpose, before the guard sees
// it. Exits 1 when a violation was found, 0 when none was.
//
//   guarded_llama --model tiny.gguf --flash off --corrupt mask-bit
//   guarded_llama --model tiny.gguf --metrics-port 9464 --seconds 60
//   ATTNGUARD_OPTIONS=on_violation=log,dump guarded_llama --model tiny.gguf
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "adapters/llama_cpp/examples/server.h"
#if ATTNGUARD_WITH_PROMETHEUS
#include "adapters/prometheus/exporter.h"
#endif
#include "guard/policy/runtime_options.h"
#include "guard/runtime/actions.h"

namespace {

using attnguard::ActionSink;
using attnguard::Guard;
using attnguard::GuardCounters;
using attnguard::LiveCheck;
using attnguard::Result;
using attnguard::examples::Corruption;
using attnguard::examples::ServerOptions;
using attnguard::examples::ServerResult;
using attnguard::llama_cpp::EngineFinding;
using attnguard::llama_cpp::HookCounters;
using attnguard::llama_cpp::LiveHook;

constexpr int kMostLines = 3;  // of the log, in a minute
constexpr std::chrono::seconds kDumpWait{30};

// The guard's log is what the program prints.
attnguard::ActionHooks printing() {
  return {.log = [](std::string_view line) {
    std::printf("%.*s\n", static_cast<int>(line.size()), line.data());
  }};
}

struct Settings {
  ServerOptions server;
  std::string flash = "on", cells = "unified", corrupt = "none";
  int sample = 1;
  int rows = 8;
  double max_overhead = 0;
  int window = 0, windowed_layers = 1;
  double scale = 0;
  double seconds = 0;
  int metrics_port = -1;
};

std::string parse(int argc, char** argv, Settings& settings, int& code) {
  CLI::App app("Serves a small model with the live guard inside llama.cpp.");
  ServerOptions& server = settings.server;
  server.libraries = ATTNGUARD_LLAMA_CPP_LIB;
  app.add_option("--model", server.model, "a .gguf file")->required();
  app.add_option("--flash", settings.flash, "flash attention")
      ->check(CLI::IsMember({"on", "off"}));
  app.add_option("--cells", settings.cells,
                 "one stream of cells for all sequences, or one for each")
      ->check(CLI::IsMember({"unified", "streams"}));
  app.add_option("--cache", server.cache, "type of the cache")
      ->check(CLI::IsMember({"f32", "f16", "bf16", "q8_0"}));
  app.add_option("--window", settings.window,
                 "tokens that a windowed layer sees; 0: no layer has one");
  app.add_option("--windowed-layers", settings.windowed_layers,
                 "one layer in so many has the window, the first among them")
      ->check(CLI::PositiveNumber);
  app.add_option("--scale", settings.scale,
                 "of the scores; 0: whatever the graph says");
  app.add_option("--seconds", settings.seconds, "serves for so long");
  app.add_option("--metrics-port", settings.metrics_port,
                 "serves /metrics on 127.0.0.1; 0: on a free port");
  app.add_option("--steps", server.steps, "tokens for each sequence");
  app.add_option("--ubatch", server.ubatch, "most tokens of a graph");
  app.add_option("--seed", server.seed, "of the prompts");
  app.add_flag("!--untold", server.tell,
               "the hook is not told of sequences and positions");
  app.add_option("--sample", settings.sample, "one call in so many")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--rows", settings.rows, "rows that are computed again");
  app.add_option("--max-overhead", settings.max_overhead,
                 "share of the time, 0.005 is 0.5 %; 0: no limit");
  std::vector<std::string> faults;
  for (std::string_view name : attnguard::examples::fault_names())
    faults.emplace_back(name);
  app.add_option("--corrupt", settings.corrupt, "what is spoilt")
      ->check(CLI::IsMember(faults));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    code = app.exit(error) == 0 ? 0 : 2;
    return "usage";
  }
  server.flash = settings.flash == "on";
  server.unified = settings.cells == "unified";
  return {};
}

attnguard::RuntimePolicy policy_of(const Settings& settings) {
  attnguard::RuntimePolicy policy;
  policy.max_overhead.reset();
  if (settings.max_overhead > 0) policy.max_overhead = settings.max_overhead;
  attnguard::RuntimePatch patch;
  patch.sample_every = settings.sample;
  patch.rows = settings.rows;
  patch.severity_actions[attnguard::Severity::kError] =
      attnguard::kActionCount | attnguard::kActionLog;
  policy.patches.push_back(patch);
  policy.log_per_minute = kMostLines;
  return policy;
}

std::uint64_t print_guard(const GuardCounters& counters) {
  std::uint64_t violations = 0;
  for (const LiveCheck check : attnguard::all_live_checks()) {
    // What the hook reported is printed by the hook's own checks.
    if (check == LiveCheck::kEngine) continue;
    const attnguard::CheckCounters& its = counters.check(check);
    violations += its.violations;
    if (its.runs == 0) continue;
    std::printf("  %-13s %6llu calls %8llu rows %6llu violations\n",
                std::string(attnguard::live_check_id(check)).c_str(),
                static_cast<unsigned long long>(its.runs),
                static_cast<unsigned long long>(its.rows),
                static_cast<unsigned long long>(its.violations));
  }
  return violations;
}

void print_hook(const HookCounters& counters) {
  for (std::size_t i = 0; i < attnguard::llama_cpp::kNumEngineChecks; ++i) {
    const HookCounters::Check& its = counters.checks[i];
    if (its.runs == 0) continue;
    std::printf(
        "  %-13s %6llu calls %8llu seen %6llu violations\n",
        std::string(attnguard::llama_cpp::engine_check_id(
                        static_cast<attnguard::llama_cpp::EngineCheck>(i)))
            .c_str(),
        static_cast<unsigned long long>(its.runs),
        static_cast<unsigned long long>(its.judged),
        static_cast<unsigned long long>(its.violations));
  }
}

int fail(const std::string& message) {
  std::fprintf(stderr, "guarded_llama: %s\n", message.c_str());
  return 3;
}

// `told` counts what the hook's own checks find.
attnguard::llama_cpp::LiveHookOptions hook_options(const Settings& settings,
                                                   std::uint64_t& told) {
  attnguard::llama_cpp::LiveHookOptions options;
  if (settings.scale > 0) options.softmax_scale = settings.scale;
  if (settings.window > 0)
    options.window = [&settings](int layer) {
      return layer % settings.windowed_layers == 0 ? settings.window : 0;
    };
  options.on_finding = [&told](const EngineFinding&) { ++told; };
  return options;
}

#if ATTNGUARD_WITH_PROMETHEUS
Result<std::unique_ptr<attnguard::PrometheusExporter>> expose(
    int port, const Guard& guard, const ActionSink& sink,
    const LiveHook& hook) {
  auto exporter = attnguard::PrometheusExporter::listen(
      "127.0.0.1:" + std::to_string(port), [&guard, &sink, &hook] {
        const attnguard::ActionCounters actions = sink.counters();
        std::vector<attnguard::MetricFamily> families =
            attnguard::guard_metrics(guard.counters(), &actions);
        for (attnguard::MetricFamily& family :
             attnguard::llama_cpp::hook_metrics(hook.counters()))
          families.push_back(std::move(family));
        return families;
      });
  if (exporter.ok()) {
    std::printf("metrics on port %d\n", exporter.value()->port());
    std::fflush(stdout);
  }
  return exporter;
}
#endif

// Serves until the time is over, at least once.
attnguard::Status serve_on(const Settings& settings, LiveHook& hook,
                           Corruption& corruption, ServerResult& total) {
  const auto start = std::chrono::steady_clock::now();
  do {
    const Result<ServerResult> served =
        attnguard::examples::serve(settings.server, &hook, corruption);
    if (!served.ok()) return served.status();
    total.tokens += served.value().tokens;
    total.batches += served.value().batches;
  } while (
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count() < settings.seconds);
  return attnguard::ok_status();
}

int print_result(const Settings& settings, const Guard& guard,
                 const HookCounters& hook, const Corruption& corruption,
                 const ServerResult& served, std::uint64_t told) {
  if (!corruption.done().empty())
    std::printf("corrupted: %s\n", corruption.done().c_str());
  else if (settings.corrupt != "none")
    return fail("nothing was corrupted: the model gave no occasion");
  std::printf("served %lld tokens in %lld batches\n",
              static_cast<long long>(served.tokens),
              static_cast<long long>(served.batches));
  std::printf("%llu attention calls, %llu looked at, %llu judged\n",
              static_cast<unsigned long long>(hook.attention),
              static_cast<unsigned long long>(hook.sampled),
              static_cast<unsigned long long>(hook.observed));
  if (hook.declined > 0)
    std::printf("%llu not judged: %s\n",
                static_cast<unsigned long long>(hook.declined),
                hook.last_reason.c_str());
  const std::uint64_t violations = print_guard(guard.counters()) + told;
  print_hook(hook);
  std::printf("%s\n", violations > 0 ? "violation" : "no violation");
  return violations > 0 ? 1 : 0;
}

int run(const Settings& settings) {
  attnguard::RuntimePolicy policy = policy_of(settings);
  const attnguard::RuntimeOptionsParse given =
      attnguard::apply_runtime_environment(policy);
  for (const std::string& error : given.errors)
    std::fprintf(stderr, "%s: %s\n", "guarded_llama", error.c_str());
  if (!given.ok()) return 2;
  if (given.help) {
    std::fputs(attnguard::runtime_options_help(policy).c_str(), stdout);
    return 0;
  }
  const auto sink =
      std::make_shared<ActionSink>(policy, "llama.cpp", printing());
  Result<std::unique_ptr<Guard>> created =
      Guard::create(std::move(policy), {.sink = sink});
  if (!created.ok()) return fail(created.status().message());
  Guard& guard = *created.value();
  std::uint64_t told = 0;
  LiveHook hook(guard, hook_options(settings, told));
#if ATTNGUARD_WITH_PROMETHEUS
  std::unique_ptr<attnguard::PrometheusExporter> exporter;
  if (settings.metrics_port >= 0) {
    auto listening = expose(settings.metrics_port, guard, *sink, hook);
    if (!listening.ok()) return fail(listening.status().message());
    exporter = std::move(listening.value());
  }
#else
  if (settings.metrics_port >= 0)
    return fail("built without prometheus-cpp (Debian: prometheus-cpp-dev)");
#endif
  // The last layer, once the prompts are in the cache; the mask of the prompts.
  const auto fault = attnguard::examples::find_fault(settings.corrupt);
  const bool prompt = fault == attnguard::examples::Fault::kMaskBit;
  Corruption corruption(fault, prompt ? 0 : 1, prompt ? 0 : 3);
  std::printf("flash attention %s, cells %s, cache %s\n",
              settings.flash.c_str(), settings.cells.c_str(),
              settings.server.cache.c_str());
  ServerResult served;
  if (attnguard::Status status = serve_on(settings, hook, corruption, served);
      !status.ok())
    return fail(status.message());
  if (!sink->flush(kDumpWait)) return fail("a dump is still not written");
  return print_result(settings, guard, hook.counters(), corruption, served,
                      told);
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  int code = 0;
  if (!parse(argc, argv, settings, code).empty()) return code;
  return run(settings);
}
