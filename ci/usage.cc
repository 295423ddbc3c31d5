#include "ci/usage.h"

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

std::optional<Policy> read_policy(const std::optional<std::string>& path,
                                  std::ostream& err) {
  if (!path) return default_policy();
  PolicyParse parse = load_policy(*path, check_ids());
  if (!parse.policy)
    err << terminal_text(format_diagnostics(parse.diagnostics));
  return std::move(parse.policy);
}

}  // namespace attnguard
