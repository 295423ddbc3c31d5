#include "adapters/llama_cpp/live/findings.h"

namespace attnguard::llama_cpp {
namespace {

constexpr std::array<std::string_view, kNumEngineChecks> kIds = {
    "mask", "weights", "cache-write", "cache-cell"};

double as_double(std::uint64_t count) { return static_cast<double>(count); }

MetricFamily single(const char* name, const char* help, std::uint64_t value) {
  return {name, help, MetricType::kCounter, {{{}, as_double(value), {}}}};
}

MetricFamily by_check(const char* name, const char* help,
                      const HookCounters& counters,
                      std::uint64_t HookCounters::Check::*value) {
  MetricFamily family{name, help, MetricType::kCounter, {}};
  for (std::size_t i = 0; i < kNumEngineChecks; ++i)
    family.samples.push_back({{{"check", std::string(kIds[i])}},
                              as_double(counters.checks[i].*value),
                              {}});
  return family;
}

}  // namespace

std::string_view engine_check_id(EngineCheck check) {
  return kIds[static_cast<std::size_t>(check)];
}

std::vector<MetricFamily> hook_metrics(const HookCounters& counters) {
  return {
      single("attnguard_llama_cpp_graphs_total", "Ubatches that were computed",
             counters.graphs),
      single("attnguard_llama_cpp_attention_total", "Attention calls in them",
             counters.attention),
      single("attnguard_llama_cpp_observed_total",
             "Attention calls that were handed to the guard",
             counters.observed),
      single("attnguard_llama_cpp_not_told_total",
             "Observed calls that were judged by the engine's own mask",
             counters.not_told),
      single("attnguard_llama_cpp_declined_total",
             "Sampled attention calls that could not be judged",
             counters.declined),
      by_check("attnguard_llama_cpp_checks_total",
               "Runs of the hook's own checks", counters,
               &HookCounters::Check::runs),
      by_check("attnguard_llama_cpp_violations_total",
               "Runs of the hook's own checks that found something", counters,
               &HookCounters::Check::violations),
  };
}

}  // namespace attnguard::llama_cpp
