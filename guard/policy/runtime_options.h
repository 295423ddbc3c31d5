// The settings of the live guard by name. One table feeds ATTNGUARD_OPTIONS,
// the `runtime` section of a policy file, its printed form and the help text.
//
//   ATTNGUARD_OPTIONS=sample=1/100:max_overhead=1%:on_violation=log,dump
//
// A value that holds a colon stands in quotes: dump_dir='C:/dumps'. Options
// override the policy, for every layer.
#ifndef ATTNGUARD_GUARD_POLICY_RUNTIME_OPTIONS_H_
#define ATTNGUARD_GUARD_POLICY_RUNTIME_OPTIONS_H_

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "guard/base/status.h"
#include "guard/policy/runtime_policy.h"

namespace attnguard {

inline constexpr const char* kRuntimeOptionsVariable = "ATTNGUARD_OPTIONS";

// Where a setting is kept: in the policy itself, or in one of its patches.
struct RuntimeSettingPlace {
  RuntimePolicy& policy;
  RuntimePatch& patch;
};

struct RuntimeOption {
  std::string name;    // "sample"
  std::string values;  // What it takes: "1/N"
  std::string help;    // One line.

  // Whether a policy can set it for some layers only.
  bool by_layer = false;

  // A severity: in a policy it stands under `checks`.
  bool is_check = false;

  // The message says what was expected and what was given.
  std::function<Status(RuntimeSettingPlace place, std::string_view text)> set;

  // The text that set() takes, or empty where it is not set.
  std::function<std::string(const RuntimePolicy&, const RuntimePatch&)> get;
};

std::span<const RuntimeOption> all_runtime_options();

// nullptr when there is no such option.
const RuntimeOption* find_runtime_option(std::string_view name);
std::vector<std::string_view> runtime_option_names();

struct RuntimeOptionsParse {
  std::vector<std::string> errors;  // Each names its option and the fix.
  bool help = false;  // help=1: the host is asked to show the help.

  bool ok() const { return errors.empty(); }
};

// Applies a text such as "sample=1/100:help=1" behind everything that the
// policy says. The policy is changed only when there are no errors.
RuntimeOptionsParse apply_runtime_options(std::string_view text,
                                          RuntimePolicy& policy);

// The same with the text of the environment's ATTNGUARD_OPTIONS, if any.
RuntimeOptionsParse apply_runtime_environment(RuntimePolicy& policy);

// Every option with what it takes, what it does, and its present value for
// layers that nothing else is said of.
std::string runtime_options_help(const RuntimePolicy& policy);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_POLICY_RUNTIME_OPTIONS_H_
