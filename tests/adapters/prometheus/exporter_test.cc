#include "adapters/prometheus/exporter.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>

namespace attnguard {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The answer to GET /metrics at this port of the own machine.
std::string scrape(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_GE(socket, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(socket, reinterpret_cast<const sockaddr*>(&address),
                    sizeof(address)),
            0);
  const std::string request =
      "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  EXPECT_EQ(write(socket, request.data(), request.size()),
            static_cast<ssize_t>(request.size()));
  std::string answer;
  char part[4096];
  for (ssize_t got; (got = read(socket, part, sizeof(part))) > 0;)
    answer.append(part, static_cast<std::size_t>(got));
  close(socket);
  return answer;
}

std::vector<MetricFamily> sample_metrics() {
  GuardCounters counters;
  counters.calls = 123;
  counters.checks[static_cast<std::size_t>(LiveCheck::kRecompute)]
      .errors.counts[0] = 5;
  counters.groups.push_back({"blk.*", {}});
  counters.groups[0].violations[0] = 2;
  return guard_metrics(counters);
}

TEST(PrometheusExporter, ServesWhatTheTextRendererShows) {
  auto exporter = PrometheusExporter::listen("127.0.0.1:0", sample_metrics);
  ASSERT_TRUE(exporter.ok()) << exporter.status().message();
  ASSERT_GT(exporter.value()->port(), 0);
  const std::string page = scrape(exporter.value()->port());
  EXPECT_THAT(page, HasSubstr("200 OK"));
  for (const char* part :
       {"# TYPE attnguard_calls_total counter\nattnguard_calls_total 123\n",
        "attnguard_violations_total{check=\"finite\",layer_group=\"blk.*\"} 2",
        "# TYPE attnguard_error_ratio histogram\n",
        "attnguard_error_ratio_bucket{check=\"recompute\",le=\"+Inf\"} 5"}) {
    EXPECT_THAT(page, HasSubstr(part));
    EXPECT_THAT(prometheus_text(sample_metrics()), HasSubstr(part));
  }
}

TEST(PrometheusExporter, AsksAtEachScrape) {
  double scrapes = 0;
  auto exporter = PrometheusExporter::listen("127.0.0.1:0", [&scrapes] {
    return std::vector<MetricFamily>{
        {"x", "h", MetricType::kGauge, {{{}, ++scrapes, {}}}}};
  });
  ASSERT_TRUE(exporter.ok()) << exporter.status().message();
  EXPECT_THAT(scrape(exporter.value()->port()), HasSubstr("\nx 1\n"));
  EXPECT_THAT(scrape(exporter.value()->port()), HasSubstr("\nx 2\n"));
}

TEST(PrometheusExporter, SurvivesASourceThatThrows) {
  auto exporter = PrometheusExporter::listen(
      "127.0.0.1:0",
      []() -> std::vector<MetricFamily> { throw std::runtime_error("no"); });
  ASSERT_TRUE(exporter.ok());
  EXPECT_THAT(scrape(exporter.value()->port()), Not(HasSubstr("attnguard_")));
}

TEST(PrometheusExporter, SaysThatAnAddressIsTaken) {
  auto first = PrometheusExporter::listen("127.0.0.1:0", sample_metrics);
  ASSERT_TRUE(first.ok());
  const std::string address =
      "127.0.0.1:" + std::to_string(first.value()->port());
  const auto second = PrometheusExporter::listen(address, sample_metrics);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), StatusCode::kIo);
  EXPECT_THAT(second.status().message(), HasSubstr(address));
}

}  // namespace
}  // namespace attnguard
