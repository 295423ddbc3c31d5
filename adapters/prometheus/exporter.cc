#include "adapters/prometheus/exporter.h"

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>

#include <exception>
#include <utility>

namespace attnguard {
namespace {

using prometheus::ClientMetric;

prometheus::MetricType converted(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return prometheus::MetricType::Counter;
    case MetricType::kGauge:
      return prometheus::MetricType::Gauge;
    case MetricType::kHistogram:
      break;
  }
  return prometheus::MetricType::Histogram;
}

ClientMetric::Histogram histogram_of(const MetricSample& sample) {
  ClientMetric::Histogram histogram;
  histogram.sample_sum = sample.value;
  for (const MetricBucket& bucket : sample.buckets)
    histogram.bucket.push_back({bucket.count, bucket.upper_edge});
  if (!sample.buckets.empty())
    histogram.sample_count = sample.buckets.back().count;
  return histogram;
}

ClientMetric converted(MetricType type, const MetricSample& sample) {
  ClientMetric metric;
  for (const auto& [name, value] : sample.labels)
    metric.label.push_back({name, value});
  switch (type) {
    case MetricType::kCounter:
      metric.counter.value = sample.value;
      break;
    case MetricType::kGauge:
      metric.gauge.value = sample.value;
      break;
    case MetricType::kHistogram:
      metric.histogram = histogram_of(sample);
      break;
  }
  return metric;
}

class GuardCollectable final : public prometheus::Collectable {
 public:
  explicit GuardCollectable(MetricSource source) : source_(std::move(source)) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    std::vector<prometheus::MetricFamily> families;
    try {
      for (const MetricFamily& family : source_()) {
        if (family.samples.empty()) continue;
        prometheus::MetricFamily to;
        to.name = family.name;
        to.help = family.help;
        to.type = converted(family.type);
        for (const MetricSample& sample : family.samples)
          to.metric.push_back(converted(family.type, sample));
        families.push_back(std::move(to));
      }
    } catch (...) {
      families.clear();  // Half a page would be taken for the whole.
    }
    return families;
  }

 private:
  MetricSource source_;
};

}  // namespace

// The server goes before what it asks.
struct PrometheusExporter::State {
  std::shared_ptr<prometheus::Collectable> collectable;
  std::unique_ptr<prometheus::Exposer> exposer;
};

std::shared_ptr<prometheus::Collectable> prometheus_collectable(
    MetricSource source) {
  return std::make_shared<GuardCollectable>(std::move(source));
}

Result<std::unique_ptr<PrometheusExporter>> PrometheusExporter::listen(
    const std::string& address, MetricSource source) {
  auto state = std::make_unique<State>();
  state->collectable = prometheus_collectable(std::move(source));
  try {
    state->exposer = std::make_unique<prometheus::Exposer>(address);
    state->exposer->RegisterCollectable(state->collectable);
  } catch (const std::exception& error) {
    return Status(StatusCode::kIo,
                  "cannot serve metrics at " + address + ": " + error.what());
  }
  return std::unique_ptr<PrometheusExporter>(
      new PrometheusExporter(std::move(state)));
}

PrometheusExporter::PrometheusExporter(std::unique_ptr<State> state)
    : state_(std::move(state)) {}

PrometheusExporter::~PrometheusExporter() { state_->exposer.reset(); }

int PrometheusExporter::port() const {
  const std::vector<int> ports = state_->exposer->GetListeningPorts();
  return ports.empty() ? 0 : ports.front();
}

}  // namespace attnguard
