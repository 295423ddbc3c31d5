#include "ci/run/failures.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <set>
#include <sstream>

#include "ci/output_file.h"
#include "ci/run/text_file.h"
#include "guard/base/text.h"
#include "guard/check/check.h"
#include "guard/diagnosis/quota.h"
#include "guard/policy/policy_yaml.h"

namespace attnguard {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTitle = "# attnguard failure 1";
constexpr std::string_view kExtension = ".failure";

// The engine's name as part of a file's: the digest tells apart what is alike.
// Problems that shrink to the same case share a file, wherever it was found.
std::string file_name(SavedFailure failure) {
  failure.found_on.clear();
  std::string name;
  for (char c : failure.engine.substr(0, 60))
    name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name + "-" + digest_of(failure.text()) + std::string(kExtension);
}

bool is_one_line(const std::string& text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < ' ';
  });
}

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words)
    text += (text.empty() ? "" : " ") + word;
  return text;
}

Status set_seed(const std::string& value, std::uint64_t& seed) {
  const char* end = value.data() + value.size();
  const auto [at, error] = std::from_chars(value.data(), end, seed);
  if (error == std::errc() && at == end) return ok_status();
  return invalid_argument("'" + value + "' is no seed");
}

Status set_field(const std::string& name, const std::string& value,
                 SavedFailure& failure) {
  if (name == "seed") return set_seed(value, failure.seed);
  if (name == "checks") {
    for (std::string_view id : split(value, ' '))
      if (!id.empty()) failure.checks.emplace_back(id);
    for (const std::string& id : failure.checks)
      if (find_check(id) == nullptr)
        return invalid_argument("unknown check '" + id + "'" +
                                suggestion(id, check_ids()));
    return ok_status();
  }
  struct Field {
    std::string_view name;
    std::string SavedFailure::*value;
  };
  constexpr Field kFields[] = {
      {"engine", &SavedFailure::engine},
      {"problem", &SavedFailure::problem},
      {"coverage", &SavedFailure::coverage},
      {"policy", &SavedFailure::policy},
      {"policy-settings", &SavedFailure::policy_settings},
      {"found-on", &SavedFailure::found_on}};
  for (const Field& field : kFields)
    if (name == field.name) {
      failure.*field.value = value;
      return ok_status();
    }
  return invalid_argument("unknown field '" + name + "'");
}

}  // namespace

std::string SavedFailure::text() const {
  std::string out(kTitle);
  out += "; replay it with: attnguard check --replay THIS_FILE\n";
  out += "engine: " + engine + "\nproblem: " + problem + "\n";
  if (!checks.empty()) out += "checks: " + join(checks) + "\n";
  out += "seed: " + std::to_string(seed) + "\ncoverage: " + coverage + "\n";
  if (!policy.empty()) out += "policy: " + policy + "\n";
  out += "policy-settings: " + policy_settings + "\n";
  return out + "found-on: " + found_on + "\n";
}

Result<SavedFailure> SavedFailure::parse(const std::string& text) {
  SavedFailure failure;
  std::istringstream lines(text);
  std::string line;
  if (!std::getline(lines, line) || !line.starts_with(kTitle))
    return invalid_argument("does not start with '" + std::string(kTitle) +
                            "': no saved failure");
  for (int number = 2; std::getline(lines, line); ++number) {
    if (trim(line).empty() || line.starts_with('#')) continue;
    const std::size_t colon = line.find(": ");
    const std::string where = "line " + std::to_string(number) + ": ";
    if (colon == line.npos) return invalid_argument(where + "no 'name: value'");
    const Status status =
        set_field(line.substr(0, colon),
                  std::string(trim(line.substr(colon + 2))), failure);
    if (!status.ok()) return invalid_argument(where + status.message());
  }
  if (failure.engine.empty() || failure.problem.empty())
    return invalid_argument(
        std::string(failure.engine.empty() ? "engine" : "problem") +
        " is missing");
  return failure;
}

std::string settings_digest(const Policy& policy) {
  Policy settings = policy;
  settings.problems.clear();
  settings.seed = 1;
  return digest_of(print_policy(settings));
}

std::vector<SavedFailure> failures_of(const RunResult& run,
                                      const Settings& settings,
                                      const std::string& policy_settings) {
  std::vector<SavedFailure> failures;
  std::set<std::pair<std::string, std::vector<std::string>>> known;
  for (const ProblemResult& result : run.problems) {
    const bool failed = result.verdict == Verdict::kViolation ||
                        result.verdict == Verdict::kEngineError;
    if (!failed || result.number == 0) continue;  // 0: a replay
    SavedFailure failure;
    failure.engine = run.engine;
    failure.problem = result.smallest_failing.empty() ? result.problem_line
                                                      : result.smallest_failing;
    failure.checks = failing_checks(result);
    failure.seed = settings.seed;
    failure.coverage = coverage_name(settings.coverage);
    failure.policy = settings.policy_file;
    failure.policy_settings = policy_settings;
    failure.found_on = result.problem_line;
    if (!is_one_line(failure.engine) || !is_one_line(failure.policy)) continue;
    if (known.emplace(failure.problem, failure.checks).second)
      failures.push_back(std::move(failure));
  }
  return failures;
}

Status save_failures(const std::string& folder,
                     const std::vector<SavedFailure>& failures) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return {StatusCode::kIo, "--save-failures: cannot make the folder '" +
                                 folder + "': " + error.message()};
  for (const SavedFailure& failure : failures) {
    const std::string path = folder + "/" + file_name(failure);
    if (fs::exists(path, error)) continue;
    OutputFile file;
    Status status = file.open(path, "saved failure");
    if (status.ok()) status = file.commit(failure.text());
    if (!status.ok()) return status;
  }
  return ok_status();
}

Result<std::vector<SavedFailure>> load_failures(const std::string& folder,
                                                const std::string& engine) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == kExtension)
      paths.push_back(entry.path().string());
  if (error && error != std::errc::no_such_file_or_directory)
    return invalid_argument("--save-failures: cannot read the folder '" +
                            folder + "': " + error.message());
  std::sort(paths.begin(), paths.end());
  std::vector<SavedFailure> failures;
  for (const std::string& path : paths) {
    const Result<std::string> text = read_text_file(path);
    if (!text.ok()) return text.status();
    Result<SavedFailure> failure = SavedFailure::parse(text.value());
    if (!failure.ok())
      return invalid_argument(path + ": " + failure.status().message());
    const Result<Problem> problem = Problem::parse(failure.value().problem);
    if (!problem.ok())
      return invalid_argument(path +
                              ": problem: " + problem.status().message());
    if (failure.value().engine == engine)
      failures.push_back(std::move(failure.value()));
  }
  return failures;
}

}  // namespace attnguard
