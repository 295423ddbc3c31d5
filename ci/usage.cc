#include "ci/usage.h"

#include <charconv>
#include <filesystem>
#include <ostream>
#include <system_error>

#include "ci/cli.h"
#include "guard/check/check.h"
#include "guard/pipeline.h"
#include "guard/policy/policy_yaml.h"
#include "guard/report/safe_text.h"

namespace attnguard {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPolicyFile = "attnguard.yaml";

}  // namespace

int usage_error(std::ostream& err, std::string_view message,
                std::string_view hint) {
  err << "attnguard: error: " << terminal_text(message) << '\n';
  if (!hint.empty()) err << "  " << hint << '\n';
  return kExitUsage;
}

Result<std::uint64_t> whole_number(std::string_view option,
                                   std::string_view text, std::uint64_t lowest,
                                   std::uint64_t highest) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && at == end && value >= lowest && value <= highest)
    return value;
  return invalid_argument(std::string(option) + ": '" + std::string(text) +
                          "' is not a whole number from " +
                          std::to_string(lowest) + " to " +
                          std::to_string(highest));
}

std::string find_policy_file(const std::string& folder) {
  if (folder.empty()) return {};
  std::error_code error;
  const fs::path start = fs::canonical(folder, error);
  if (error) return {};
  std::string found;
  fs::path above = start;
  for (std::string prefix;; prefix += "../", above = above.parent_path()) {
    // A directory of that name is found, and refused with its name.
    if (found.empty() && fs::exists(above / kPolicyFile, error))
      found =
          folder == "." ? prefix + kPolicyFile : (above / kPolicyFile).string();
    if (fs::exists(above / ".git", error)) return found;
    if (above == above.parent_path()) break;
  }
  return fs::exists(start / kPolicyFile, error) ? found : "";
}

std::optional<Policy> read_policy(const std::optional<std::string>& path,
                                  std::ostream& err,
                                  const std::string& folder) {
  const std::string found = path ? "" : find_policy_file(folder);
  const std::string& file = path ? *path : found;
  if (file.empty() || file == default_policy().name) return default_policy();
  PolicyParse parse = load_policy(file, check_ids());
  if (!parse.policy)
    err << terminal_text(format_diagnostics(parse.diagnostics));
  else
    parse.policy->found = !found.empty();
  return std::move(parse.policy);
}

}  // namespace attnguard
