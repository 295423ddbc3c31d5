// The `runtime` section of a policy: what the live guard does.
#ifndef ATTNGUARD_GUARD_POLICY_RUNTIME_READER_H_
#define ATTNGUARD_GUARD_POLICY_RUNTIME_READER_H_

#include <memory>
#include <string>

#include "guard/policy/runtime_policy.h"
#include "guard/policy/source_text.h"
#include "guard/policy/yaml_tree.h"

namespace attnguard {

// `node` is the value of `runtime`. Errors go to the sink; what is returned
// then is incomplete. The first patch is that of all layers.
std::shared_ptr<const RuntimePolicy> read_runtime(const YamlNode& node,
                                                  const SourceText& source,
                                                  DiagnosticSink& sink);

// The section as YAML, from "runtime:\n" on; reading it gives the same policy.
std::string print_runtime(const RuntimePolicy& runtime);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_POLICY_RUNTIME_READER_H_
