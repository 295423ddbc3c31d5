#include <algorithm>
#include <cstdlib>
#include <thread>

#include "ci/run/run.h"
#include "ci/usage.h"

namespace attnguard {
namespace {

constexpr std::uint64_t kMostJobs = 1024;

Status read_number(const Arguments& arguments, const char* option,
                   std::uint64_t lowest, std::uint64_t highest,
                   const std::function<void(std::uint64_t)>& use) {
  const auto text = arguments.value(option);
  if (!text) return ok_status();
  const auto number = whole_number(option, *text, lowest, highest);
  if (!number.ok()) return number.status();
  use(number.value());
  return ok_status();
}

Status read_jobs(const Arguments& arguments, RunSettings& settings) {
  if (arguments.value("--jobs") == "auto") {
    settings.jobs =
        static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u));
    return ok_status();
  }
  return read_number(arguments, "--jobs", 1, kMostJobs, [&](std::uint64_t n) {
    settings.jobs = static_cast<int>(n);
  });
}

Status read_limits(const Arguments& arguments, RunSettings& settings) {
  Status status = read_number(
      arguments, "--time-limit", 1, kMostSeconds, [&](std::uint64_t n) {
        settings.time_limit = static_cast<std::int64_t>(n);
      });
  if (status.ok())
    status = read_number(arguments, "--most-unchecked", 0, 100,
                         [&](std::uint64_t n) {
                           settings.most_unchecked = static_cast<double>(n);
                         });
  if (!status.ok() || !arguments.value("--max-memory")) return status;
  const auto size = read_size("--max-memory", *arguments.value("--max-memory"));
  if (!size.ok()) return size.status();
  settings.max_memory = size.value();
  return ok_status();
}

Status read_part(const Arguments& arguments, RunSettings& settings) {
  if (const auto text = arguments.value("--shard")) {
    const auto shard = read_shard(
        *text, [](const char* name) -> const char* { return getenv(name); });
    if (!shard.ok()) return shard.status();
    settings.shard = shard.value();
  }
  if (const auto path = arguments.value("--costs")) {
    auto costs = MeasuredCosts::read(*path);
    if (!costs.ok())
      return invalid_argument("--costs: " + costs.status().message());
    settings.costs = std::move(costs.value());
  }
  return ok_status();
}

}  // namespace

const std::vector<OptionSpec>& run_options() {
  static const std::vector<OptionSpec> options = {
      {"--jobs", "N|auto",
       "Problems at a time, each in a process of its own; auto: the cores"},
      {"--shard", "I/N|auto",
       "Only part I of N, by cost; auto: as GTEST_SHARD_INDEX or "
       "CI_NODE_INDEX say. 'attnguard merge' joins the JSON reports"},
      {"--costs", "FILE",
       "JSON report whose times share out the parts; the same for all of them"},
      {"--time-limit", "SECONDS",
       "Of the whole run; what is left then is named, and inconclusive"},
      {"--most-unchecked", "PERCENT",
       "So many problems may be left unchecked without making the run "
       "inconclusive; default: 0"},
      {"--max-memory", "SIZE",
       "Leave out problems that need more, e.g. 2G; of --jobs, all together"},
      {"--shrink-time", "SECONDS",
       "To look for the smallest failing case of a problem; default: 5"},
      {"--save-failures", "DIR",
       "Keep each failure as a small file, and replay those first"},
      {"--replay", "LINE|FILE",
       "Run again what a report's 'replay it with' or a saved failure says"}};
  return options;
}

Result<RunSettings> read_run_settings(const Arguments& arguments) {
  RunSettings settings;
  Status status = read_jobs(arguments, settings);
  if (status.ok()) status = read_limits(arguments, settings);
  if (status.ok()) status = read_part(arguments, settings);
  if (!status.ok()) return status;
  settings.failures = arguments.value("--save-failures").value_or("");
  return settings;
}

}  // namespace attnguard
