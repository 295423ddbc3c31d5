// Reads the `suppressions` of a policy.
#ifndef ATTNGUARD_GUARD_POLICY_SUPPRESSION_READER_H_
#define ATTNGUARD_GUARD_POLICY_SUPPRESSION_READER_H_

#include <span>
#include <string_view>
#include <vector>

#include "guard/policy/policy.h"
#include "guard/policy/source_text.h"
#include "guard/policy/yaml_tree.h"

namespace attnguard {

// `node` is the value of `suppressions`. Errors go to the sink; what is
// returned then is incomplete.
std::vector<Suppression> read_suppressions(
    const YamlNode& node, const SourceText& source,
    std::span<const std::string_view> check_ids, DiagnosticSink& sink);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_POLICY_SUPPRESSION_READER_H_
