// The guard's metrics through prometheus-cpp: over HTTP by themselves, or
// beside those of a program that has an exposer or a registry of its own.
//
//   auto exporter = PrometheusExporter::listen(
//       "127.0.0.1:9464", [guard, sink] {
//         const ActionCounters actions = sink->counters();
//         return guard_metrics(guard->counters(), &actions);
//       });
//
// Programs without prometheus-cpp hand out prometheus_text() instead; see
// guard/runtime/metrics.h.
#ifndef ATTNGUARD_ADAPTERS_PROMETHEUS_EXPORTER_H_
#define ATTNGUARD_ADAPTERS_PROMETHEUS_EXPORTER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "guard/base/status.h"
#include "guard/runtime/metrics.h"

namespace prometheus {
class Collectable;
}  // namespace prometheus

namespace attnguard {

// Called at each scrape, from a thread of the HTTP server.
using MetricSource = std::function<std::vector<MetricFamily>()>;

// For prometheus::Exposer::RegisterCollectable, which keeps a weak pointer:
// the caller keeps this one. A source that throws gives no metrics.
std::shared_ptr<prometheus::Collectable> prometheus_collectable(
    MetricSource source);

class PrometheusExporter {
 public:
  // Serves /metrics at an address such as "127.0.0.1:9464"; port 0 takes a
  // free one. kIo when it cannot be bound.
  static Result<std::unique_ptr<PrometheusExporter>> listen(
      const std::string& address, MetricSource source);

  // Stops serving. The source is not called any more.
  ~PrometheusExporter();
  PrometheusExporter(const PrometheusExporter&) = delete;
  PrometheusExporter& operator=(const PrometheusExporter&) = delete;

  int port() const;

 private:
  struct State;
  explicit PrometheusExporter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace attnguard

#endif  // ATTNGUARD_ADAPTERS_PROMETHEUS_EXPORTER_H_
