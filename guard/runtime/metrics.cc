#include "guard/runtime/metrics.h"

#include <cmath>
#include <limits>

#include "guard/base/text.h"
#include "guard/base/version.h"

namespace attnguard {
namespace {

double number(std::uint64_t count) { return static_cast<double>(count); }

double seconds(std::uint64_t nanoseconds) {
  return static_cast<double>(nanoseconds) * 1e-9;
}

MetricFamily single(const char* name, const char* help, MetricType type,
                    double value) {
  return {name, help, type, {{{}, value, {}}}};
}

// One sample for each live check.
template <typename Value>
MetricFamily by_check(const GuardCounters& counters, const char* name,
                      const char* help, Value value) {
  MetricFamily family{name, help, MetricType::kCounter, {}};
  for (LiveCheck check : all_live_checks())
    family.samples.push_back({{{"check", std::string(live_check_id(check))}},
                              value(counters.check(check)),
                              {}});
  return family;
}

MetricFamily violations(const GuardCounters& counters) {
  MetricFamily family{"attnguard_violations_total",
                      "Calls in which a check found something",
                      MetricType::kCounter,
                      {}};
  for (const LayerGroupCounters& group : counters.groups)
    for (LiveCheck check : all_live_checks())
      family.samples.push_back(
          {{{"check", std::string(live_check_id(check))},
            {"layer_group", group.group}},
           number(group.violations[static_cast<std::size_t>(check)]),
           {}});
  return family;
}

MetricFamily skipped(const GuardCounters& counters) {
  MetricFamily family{"attnguard_skipped_total",
                      "Checks that were not made in a sampled call",
                      MetricType::kCounter,
                      {}};
  for (LiveCheck check : all_live_checks())
    for (std::size_t reason = 0; reason < kNumSkipReasons; ++reason) {
      const auto which = static_cast<SkipReason>(reason);
      family.samples.push_back(
          {{{"check", std::string(live_check_id(check))},
            {"reason", std::string(skip_reason_name(which))}},
           number(counters.check(check).skipped_for(which)),
           {}});
    }
  return family;
}

bool compares(LiveCheck check) {
  return check == LiveCheck::kValueRange || check == LiveCheck::kSingleKey ||
         check == LiveCheck::kRecompute || check == LiveCheck::kOnes;
}

MetricFamily errors(const GuardCounters& counters) {
  MetricFamily family{
      "attnguard_error_ratio",
      "Difference from what is expected, as a share of what rounding explains",
      MetricType::kHistogram,
      {}};
  for (LiveCheck check : all_live_checks()) {
    if (!compares(check)) continue;
    const ErrorHistogram& histogram = counters.check(check).errors;
    MetricSample sample{
        {{"check", std::string(live_check_id(check))}}, histogram.sum, {}};
    std::uint64_t so_far = 0;
    for (std::size_t i = 0; i < ErrorHistogram::kBuckets; ++i) {
      so_far += histogram.counts[i];
      sample.buckets.push_back({ErrorHistogram::upper_edge(i), so_far});
    }
    sample.buckets.back().upper_edge = std::numeric_limits<double>::infinity();
    family.samples.push_back(std::move(sample));
  }
  return family;
}

void add_canary(const CanaryState& canary,
                std::vector<MetricFamily>& families) {
  families.push_back(single("attnguard_canary_runs_total",
                            "Whole runs of the canary", MetricType::kCounter,
                            number(canary.finished)));
  families.push_back({"attnguard_canary_age_seconds",
                      "Time since the canary last finished; absent: never",
                      MetricType::kGauge,
                      {}});
  if (canary.seconds_since_last >= 0)
    families.back().samples.push_back({{}, canary.seconds_since_last, {}});
  families.push_back(single("attnguard_shape_classes",
                            "Classes of shapes that were met",
                            MetricType::kGauge, number(canary.shape_classes)));
}

MetricFamily outcomes(
    const char* name, const char* help,
    std::initializer_list<std::pair<const char*, std::uint64_t>> counts) {
  MetricFamily family{name, help, MetricType::kCounter, {}};
  for (const auto& [outcome, count] : counts)
    family.samples.push_back({{{"outcome", outcome}}, number(count), {}});
  return family;
}

void add_actions(const ActionCounters& actions,
                 std::vector<MetricFamily>& families) {
  families.push_back(outcomes("attnguard_log_lines_total",
                              "Lines for the log, by what became of them",
                              {{"written", actions.log_lines},
                               {"rate_limited", actions.log_suppressed},
                               {"no_log", actions.log_unheard}}));
  families.push_back(outcomes("attnguard_callbacks_total",
                              "The host's callbacks, by what became of them",
                              {{"made", actions.callbacks},
                               {"missing", actions.callback_missing},
                               {"failed", actions.hook_failures}}));
  const DumpCounters& dumps = actions.dumps;
  families.push_back(outcomes("attnguard_dumps_total",
                              "Calls to be dumped, by what became of them",
                              {{"written", dumps.written},
                               {"limit", dumps.dropped_limit},
                               {"busy", dumps.dropped_busy},
                               {"too_large", dumps.dropped_size},
                               {"no_tensors", dumps.no_tensors},
                               {"failed", dumps.failed}}));
  families.push_back(single("attnguard_dump_bytes_total", "Bytes of dumps",
                            MetricType::kCounter, number(dumps.bytes)));
}

void add_time(const GuardCounters& counters,
              std::vector<MetricFamily>& families) {
  families.push_back(by_check(
      counters, "attnguard_check_seconds_total", "Time of each check",
      [](const CheckCounters& check) { return seconds(check.nanoseconds); }));
  families.push_back(single("attnguard_overhead_seconds_total",
                            "Time that the guard took, of all threads",
                            MetricType::kCounter,
                            seconds(counters.overhead_nanoseconds)));
  families.push_back(
      single("attnguard_elapsed_seconds_total",
             "Time since each thread's first call, of all threads",
             MetricType::kCounter, seconds(counters.elapsed_nanoseconds)));
  families.push_back(single("attnguard_window_overhead_ratio",
                            "Largest share of a thread's present window",
                            MetricType::kGauge, counters.window_overhead));
  families.push_back(single("attnguard_sampling_ratio",
                            "Share of all calls that were looked at so far",
                            MetricType::kGauge, counters.sampling_rate()));
}

// Invalid UTF-8 becomes '?': names come from engines, and one bad byte makes
// Prometheus refuse the whole page.
std::string valid_utf8(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80                    ? 1
                               : lead >= 0xc2 && lead <= 0xdf ? 2
                               : lead >= 0xe0 && lead <= 0xef ? 3
                               : lead >= 0xf0 && lead <= 0xf4 ? 4
                                                              : 0;
    bool good = length > 0 && i + length <= text.size();
    for (std::size_t k = 1; good && k < length; ++k)
      good = (static_cast<unsigned char>(text[i + k]) & 0xc0) == 0x80;
    if (good && length >= 3) {
      // No overlong forms, no surrogates, nothing past U+10FFFF.
      const auto next = static_cast<unsigned char>(text[i + 1]);
      good = !(lead == 0xe0 && next < 0xa0) && !(lead == 0xed && next > 0x9f) &&
             !(lead == 0xf0 && next < 0x90) && !(lead == 0xf4 && next > 0x8f);
    }
    out += good ? text.substr(i, length) : std::string_view("?");
    i += good ? length : 1;
  }
  return out;
}

std::string escaped(std::string_view text, bool quotes) {
  std::string out;
  for (char c : valid_utf8(text)) {
    if (c == '\\') out += "\\\\";
    if (c == '\n') out += "\\n";
    if (c == '"') out += quotes ? "\\\"" : "\"";
    if (c != '\\' && c != '\n' && c != '"') out += c;
  }
  return out;
}

std::string value_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return format_double(value);
}

void append_line(const std::string& name, const MetricLabels& labels,
                 const std::string& value, std::string& text) {
  text += name;
  for (const auto& [key, label] : labels)
    text += (&key == &labels.front().first ? "{" : ",") + key + "=\"" +
            escaped(label, true) + '"';
  text += (labels.empty() ? " " : "} ") + value + '\n';
}

void append_histogram(const std::string& name, const MetricSample& sample,
                      std::string& text) {
  for (const MetricBucket& bucket : sample.buckets) {
    MetricLabels labels = sample.labels;
    labels.emplace_back("le", value_text(bucket.upper_edge));
    append_line(name + "_bucket", labels, std::to_string(bucket.count), text);
  }
  append_line(name + "_sum", sample.labels, value_text(sample.value), text);
  append_line(name + "_count", sample.labels,
              std::to_string(sample.buckets.back().count), text);
}

}  // namespace

std::string_view metric_type_name(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return "counter";
    case MetricType::kGauge:
      return "gauge";
    case MetricType::kHistogram:
      break;
  }
  return "histogram";
}

std::vector<MetricFamily> guard_metrics(const GuardCounters& counters,
                                        const ActionCounters* actions) {
  std::vector<MetricFamily> families = {
      {"attnguard_build_info",
       "Always 1; the version is a label",
       MetricType::kGauge,
       {{{{"version", std::string(version_string())}}, 1, {}}}},
      single("attnguard_calls_total", "Attention calls that were seen",
             MetricType::kCounter, number(counters.calls)),
      single("attnguard_sampled_calls_total", "Calls that were looked at",
             MetricType::kCounter, number(counters.sampled)),
      single("attnguard_checked_calls_total",
             "Calls in which at least one check was made", MetricType::kCounter,
             number(counters.checked)),
      single("attnguard_fallbacks_total",
             "Outputs that were replaced by the reference's",
             MetricType::kCounter, number(counters.fallbacks)),
      single("attnguard_threads", "Threads that made calls", MetricType::kGauge,
             number(counters.threads)),
      by_check(counters, "attnguard_check_runs_total",
               "Calls in which a check was made",
               [](const CheckCounters& check) { return number(check.runs); }),
      by_check(counters, "attnguard_rows_total", "Rows that a check judged",
               [](const CheckCounters& check) { return number(check.rows); }),
      by_check(
          counters, "attnguard_findings_total", "Places that a check found",
          [](const CheckCounters& check) { return number(check.findings); })};
  families.push_back(violations(counters));
  families.push_back(skipped(counters));
  families.push_back(errors(counters));
  add_time(counters, families);
  add_canary(counters.canary, families);
  if (actions != nullptr) add_actions(*actions, families);
  return families;
}

std::string prometheus_text(std::span<const MetricFamily> families) {
  std::string text;
  for (const MetricFamily& family : families) {
    if (family.samples.empty()) continue;
    text += "# HELP " + family.name + ' ' + escaped(family.help, false) + '\n';
    text += "# TYPE " + family.name + ' ' +
            std::string(metric_type_name(family.type)) + '\n';
    for (const MetricSample& sample : family.samples) {
      if (family.type == MetricType::kHistogram)
        append_histogram(family.name, sample, text);
      else
        append_line(family.name, sample.labels, value_text(sample.value), text);
    }
  }
  return text;
}

}  // namespace attnguard
