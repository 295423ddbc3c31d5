// What the guard counted, as metrics: for Prometheus as text, without any
// library; for prometheus-cpp through adapters/prometheus.
//
// Labels have few values: checks, reasons and groups of layers, of which there
// are at most GuardCounters::kMostGroups. None is of a request, head or row.
#ifndef ATTNGUARD_GUARD_RUNTIME_METRICS_H_
#define ATTNGUARD_GUARD_RUNTIME_METRICS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "guard/runtime/actions.h"
#include "guard/runtime/counters.h"

namespace attnguard {

enum class MetricType { kCounter, kGauge, kHistogram };

std::string_view metric_type_name(MetricType type);  // "counter"

using MetricLabels = std::vector<std::pair<std::string, std::string>>;

struct MetricBucket {
  double upper_edge = 0;    // Inclusive; the last one is infinity.
  std::uint64_t count = 0;  // Of this bucket and those before it.
};

struct MetricSample {
  MetricLabels labels;
  double value = 0;  // Of a histogram: the sum.

  std::vector<MetricBucket> buckets;  // Only of a histogram.
};

struct MetricFamily {
  std::string name;  // "attnguard_calls_total"
  std::string help;
  MetricType type = MetricType::kCounter;
  std::vector<MetricSample> samples;
};

// Every family there is, always, so that a rule never waits for a name; those
// that have no sample yet are empty. `actions`: nullptr where another sink is
// used.
std::vector<MetricFamily> guard_metrics(
    const GuardCounters& counters, const ActionCounters* actions = nullptr);

// Prometheus' text format, version 0.0.4.
inline constexpr std::string_view kPrometheusContentType =
    "text/plain; version=0.0.4; charset=utf-8";
std::string prometheus_text(std::span<const MetricFamily> families);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_RUNTIME_METRICS_H_
