#include <algorithm>

#include "ci/lint/rule.h"

namespace attnguard::lint {
namespace {

constexpr const Rule* kRules[] = {&kSoftmaxAxis, &kMaskAfterSoftmax,
                                  &kMaskTriangle, &kMaskFinite, &kMaskMissing};

}  // namespace

std::span<const Rule* const> all_rules() { return kRules; }

const Rule* find_rule(std::string_view id) {
  const auto* found =
      std::find_if(std::begin(kRules), std::end(kRules),
                   [&](const Rule* rule) { return rule->id == id; });
  return found == std::end(kRules) ? nullptr : *found;
}

}  // namespace attnguard::lint
