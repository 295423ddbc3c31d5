// The schema of a policy: from the YAML tree to the plain structs.
#ifndef ATTNGUARD_GUARD_POLICY_POLICY_READER_H_
#define ATTNGUARD_GUARD_POLICY_POLICY_READER_H_

#include <span>
#include <string_view>

#include "guard/policy/policy.h"
#include "guard/policy/source_text.h"
#include "guard/policy/yaml_tree.h"

namespace attnguard {

// Errors go to the sink; what is returned then is incomplete. The first patch
// is the top level, even when it sets nothing.
Policy read_policy(const YamlNode& root, const SourceText& source,
                   std::span<const std::string_view> check_ids,
                   DiagnosticSink& sink);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_POLICY_POLICY_READER_H_
