#include "ci/usage.h"

#include <charconv>
#include <ostream>

#include "ci/cli.h"
#include "guard/check/check.h"
#include "guard/pipeline.h"
#include "guard/policy/policy_yaml.h"
#include "guard/report/safe_text.h"

namespace attnguard {

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

std::optional<Policy> read_policy(const std::optional<std::string>& path,
                                  std::ostream& err) {
  if (!path) return default_policy();
  PolicyParse parse = load_policy(*path, check_ids());
  if (!parse.policy)
    err << terminal_text(format_diagnostics(parse.diagnostics));
  return std::move(parse.policy);
}

}  // namespace attnguard
