// `attnguard runtime options`: the settings of the live guard.
#include <ostream>

#include "ci/command_table.h"
#include "ci/usage.h"
#include "guard/policy/runtime_options.h"

namespace attnguard {
namespace {

int run_options(const CommandContext& context) {
  const auto& [arguments, command_line, out, err, surroundings] = context;
  const std::optional<Policy> policy =
      read_policy(arguments.value("--policy"), err, surroundings.folder);
  if (!policy) return kExitUsage;
  RuntimePolicy runtime;
  if (policy->runtime) runtime = *policy->runtime;
  const RuntimeOptionsParse options = apply_runtime_environment(runtime);
  for (const std::string& error : options.errors) usage_error(err, error);
  if (!options.ok()) return kExitUsage;
  out << runtime_options_help(runtime);
  return kExitPass;
}

}  // namespace

extern const CommandInfo kRuntimeOptionsCommand = {
    .path = "runtime options",
    .summary = "Settings of the live guard, and what they are now",
    .operand = {},
    .options =
        {{"--policy", "FILE",
          "Whose 'runtime' section counts; default: attnguard.yaml here or "
          "above, up to the repository's root, else built-in"}},
    .run = run_options,
};

}  // namespace attnguard
