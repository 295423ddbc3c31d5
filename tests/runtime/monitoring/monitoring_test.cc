// The example alerts and the dashboard name metrics that there are, and a real
// Prometheus scrapes a guarded engine and fires.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "guard/runtime/metrics.h"
#include "tests/adapters/llama_cpp/live/guarded_llama.h"
#include "tests/support/child_program.h"
#if ATTNGUARD_WITH_LLAMA_CPP_LIVE
#include "adapters/llama_cpp/live/findings.h"
#include "tests/support/text_file.h"
#endif

namespace attnguard {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string monitoring_file(const std::string& name) {
  return std::string(ATTNGUARD_TEST_DATA) + "/../guard/runtime/monitoring/" +
         name;
}

// Every name of a series, histograms in their three forms.
std::set<std::string> series_names() {
  const ActionCounters actions;
  std::vector<MetricFamily> families = guard_metrics({}, &actions);
#if ATTNGUARD_WITH_LLAMA_CPP_LIVE
  for (MetricFamily& family : llama_cpp::hook_metrics({}))
    families.push_back(std::move(family));
#endif
  std::set<std::string> names;
  for (const MetricFamily& family : families) {
    names.insert(family.name);
    if (family.type == MetricType::kHistogram)
      for (const char* part : {"_bucket", "_sum", "_count"})
        names.insert(family.name + part);
  }
  return names;
}

// Names in the text that no series has.
std::vector<std::string> unknown_names(const std::string& text,
                                       std::size_t& found) {
  const std::set<std::string> known = series_names();
  const std::regex name("attnguard_[a-z_]+");
  std::vector<std::string> unknown;
  for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end;
       ++at) {
    ++found;
#if !ATTNGUARD_WITH_LLAMA_CPP_LIVE
    if (at->str().starts_with("attnguard_llama_cpp_")) continue;
#endif
    if (!known.contains(at->str())) unknown.push_back(at->str());
  }
  return unknown;
}

bool has_program(const std::string& name) {
  return std::system(("command -v " + name + " >/dev/null 2>&1").c_str()) == 0;
}

TEST(Monitoring, UnknownNamesAreSeen) {
  std::size_t found = 0;
  EXPECT_THAT(unknown_names("sum(attnguard_calls_totals)", found),
              testing::ElementsAre("attnguard_calls_totals"));
}

TEST(Monitoring, AlertsNameMetricsThatThereAre) {
  std::size_t found = 0;
  EXPECT_THAT(
      unknown_names(read_file(monitoring_file("attnguard.rules.yml")), found),
      IsEmpty());
  EXPECT_GE(found, 8u);
}

TEST(Monitoring, TheDashboardIsJsonAndNamesMetricsThatThereAre) {
  const nlohmann::json dashboard = nlohmann::json::parse(
      read_file(monitoring_file("attnguard.dashboard.json")), nullptr, false);
  ASSERT_FALSE(dashboard.is_discarded());
  std::set<int> ids;
  std::size_t found = 0;
  for (const nlohmann::json& panel : dashboard.at("panels")) {
    EXPECT_TRUE(ids.insert(panel.at("id").get<int>()).second);
    ASSERT_FALSE(panel.at("targets").empty()) << panel.at("title");
    for (const nlohmann::json& target : panel.at("targets"))
      EXPECT_THAT(unknown_names(target.at("expr").get<std::string>(), found),
                  IsEmpty())
          << panel.at("title");
  }
  EXPECT_GE(found, ids.size());
  EXPECT_GE(ids.size(), 10u);
  for (const nlohmann::json& variable : dashboard.at("templating").at("list"))
    if (variable.at("type") == "query") {
      EXPECT_THAT(
          unknown_names(variable.at("query").at("query").get<std::string>(),
                        found),
          IsEmpty());
    }
}

TEST(Monitoring, PromtoolTakesTheAlerts) {
  if (!has_program("promtool")) {
    if (engine_is_required("promtool")) FAIL() << "promtool is not installed";
    GTEST_SKIP() << "skipped: promtool not found";
  }
  const ProgramResult result = run_program(
      {"promtool", "check", "rules", monitoring_file("attnguard.rules.yml")});
  EXPECT_EQ(result.code, 0) << result.output;
}

// A folder of its own that is gone at the end.
class TemporaryFolder {
 public:
  TemporaryFolder()
      : path_(testing::TempDir() + "attnguard_prometheus_" +
              std::to_string(getpid())) {
    fs::create_directories(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string configuration(int target) {
  return "global:\n"
         "  scrape_interval: 200ms\n"
         "  evaluation_interval: 200ms\n"
         "rule_files: ['" +
         fs::absolute(monitoring_file("attnguard.rules.yml")).string() +
         "']\n"
         "scrape_configs:\n"
         "  - job_name: guarded\n"
         "    static_configs:\n"
         "      - targets: ['127.0.0.1:" +
         std::to_string(target) + "']\n";
}

// Asks until the answer holds the text, for a minute at most.
std::string ask_until(int port, const std::string& path,
                      const std::function<bool(const nlohmann::json&)>& good) {
  std::string answer;
  for (int i = 0; i < 240; ++i) {
    answer = http_get(port, path);
    const nlohmann::json parsed = nlohmann::json::parse(answer, nullptr, false);
    if (!parsed.is_discarded() && parsed.value("status", "") == "success" &&
        good(parsed.at("data")))
      return {};
    usleep(250000);
  }
  return answer.empty() ? "no answer" : answer;
}

// The value of the only sample; 0 where there is none.
double value_of(const nlohmann::json& data) {
  if (data.at("result").empty()) return 0;
  return std::stod(data.at("result")[0].at("value")[1].get<std::string>());
}

TEST(Monitoring, PrometheusSeesTheViolationsOfAGuardedEngine) {
  const Result<std::string> program = guarded_llama();
  ATTNGUARD_SKIP_WITHOUT("ggml", program);
  if (!has_program("prometheus")) {
    // One package has both.
    if (engine_is_required("promtool")) FAIL() << "prometheus is not installed";
    GTEST_SKIP() << "skipped: prometheus not found";
  }
  const std::string model = tiny_model("llama");
  ChildProgram engine({program.value(), "--model", model, "--metrics-port", "0",
                       "--seconds", "120", "--corrupt", "nan"});
  ASSERT_TRUE(engine.wait_for("\n", std::chrono::seconds(30)))
      << engine.output();
  int target = 0;
  ASSERT_EQ(std::sscanf(engine.output().c_str(), "metrics on port %d", &target),
            1)
      << engine.output();

  const TemporaryFolder folder;
  std::ofstream(folder.path() + "/prometheus.yml") << configuration(target);
  const int port = free_port();
  ChildProgram server(
      {"prometheus", "--config.file=" + folder.path() + "/prometheus.yml",
       "--storage.tsdb.path=" + folder.path() + "/data",
       "--web.listen-address=127.0.0.1:" + std::to_string(port)});
  ASSERT_TRUE(server.wait_for("ready to receive web requests",
                              std::chrono::seconds(60)))
      << server.output();

  EXPECT_EQ(
      ask_until(port,
                "/api/v1/query?query=sum(attnguard_violations_total%7B"
                "check%3D%22finite%22%7D)",
                [](const nlohmann::json& data) { return value_of(data) > 0; }),
      "");
  EXPECT_EQ(ask_until(port, "/api/v1/alerts",
                      [](const nlohmann::json& data) {
                        for (const nlohmann::json& alert : data.at("alerts"))
                          if (alert.at("labels").at("alertname") ==
                                  "AttnguardViolationSinceStart" &&
                              alert.at("state") == "firing")
                            return true;
                        return false;
                      }),
            "");
  // Control: what is not violated is 0, not absent.
  EXPECT_EQ(ask_until(port,
                      "/api/v1/query?query=sum(attnguard_llama_cpp_violations_"
                      "total%7Bcheck%3D%22mask%22%7D)",
                      [](const nlohmann::json& data) {
                        return !data.at("result").empty() &&
                               value_of(data) == 0;
                      }),
            "");
  EXPECT_EQ(server.stop(std::chrono::seconds(30)), 0) << server.output();
  engine.stop(std::chrono::seconds(10));
  std::remove(model.c_str());
}

}  // namespace
}  // namespace attnguard
