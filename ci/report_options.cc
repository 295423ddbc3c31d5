#include "ci/report_options.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

#include "ci/command_table.h"
#include "guard/check/check.h"
#include "guard/report/safe_text.h"

namespace attnguard {
namespace {

constexpr std::uintmax_t kMostSummary = 1 << 20;
constexpr std::string_view kCutOff =
    "\n\n**The rest is left out: a job summary ends at 1 MiB.**\n";

const std::vector<RuleText>& rules() {
  static const std::vector<RuleText> all = [] {
    std::vector<RuleText> made;
    for (const CheckInfo* check : all_checks())
      made.push_back({check->id, check->summary, check->explanation});
    return made;
  }();
  return all;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  return text.data();
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

}  // namespace

ReportOptions report_options(const std::string& command_line) {
  return {.version = std::string(command_version()),
          .command_line = command_line,
          .rules = rules(),
          .timestamp = utc_now(),
          .hostname = host_name()};
}

Status append_job_summary(const std::string& path,
                          std::span<const RunResult> results,
                          const ReportOptions& options) {
  std::string text = find_report_format("markdown")->render(results, options);
  std::error_code missing;  // It is made when it is not there.
  const std::uintmax_t size = std::filesystem::file_size(path, missing);
  const std::uintmax_t before = missing ? 0 : size;
  if (before + text.size() > kMostSummary) {
    const std::uintmax_t used = before + kCutOff.size() + 8;
    text = shortened(text, used < kMostSummary ? kMostSummary - used : 0);
    text += kCutOff;
    if (before + text.size() > kMostSummary) return ok_status();  // It is full.
  }
  std::ofstream file(path, std::ios::binary | std::ios::app);
  file << text << std::flush;
  if (file.good()) return ok_status();
  return {StatusCode::kIo,
          "cannot write the job summary to '" + path +
              "', as $GITHUB_STEP_SUMMARY says: " + std::strerror(errno)};
}

}  // namespace attnguard
