// The schema of a policy: from the YAML tree to the plain structs.
#ifndef ATTNGUARD_GUARD_POLICY_POLICY_READER_H_
#define ATTNGUARD_GUARD_POLICY_POLICY_READER_H_

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "guard/policy/policy.h"
#include "guard/policy/source_text.h"
#include "guard/policy/yaml_tree.h"

namespace attnguard {

// Loads the policy that `extends` names, as written there. nullopt: `problem`
// says why not; it stands at the value.
using LoadBase = std::function<std::optional<Policy>(const std::string& written,
                                                     std::string& problem)>;

// Errors go to the sink; what is returned then is incomplete. The first patch
// is the top level, even when it sets nothing.
//
// With a base the file's top level is laid over the base's, its engines come
// behind the base's, its suppressions are added, and its problems replace the
// base's. Without one, what is left out is taken from the built-in policy.
Policy read_policy(const YamlNode& root, const SourceText& source,
                   std::span<const std::string_view> check_ids,
                   const LoadBase& load_base, DiagnosticSink& sink);

// Sets in `patch` all that `later` sets.
void override_with(SettingsPatch& patch, const SettingsPatch& later);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_POLICY_POLICY_READER_H_
