// A rule of the lint: one file each, and one line in rule_table.cc.
#ifndef ATTNGUARD_CI_LINT_RULE_H_
#define ATTNGUARD_CI_LINT_RULE_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ci/lint/attention.h"
#include "ci/lint/masks.h"

namespace attnguard::lint {

struct Finding {
  std::string_view rule;
  std::string node;     // The node's name.
  std::string message;  // What is wrong, in a sentence or two.
  std::string fix;      // What to do about it.

  // Worth knowing, but no violation: legal by the operator's definition, or
  // not to be judged from the file.
  bool note = false;
};

// An attention and whether anything masks it.
struct Seen {
  Attention attention;
  bool masked = false;
};

struct Rule {
  std::string_view id;
  std::string_view summary;
  std::string_view explanation;

  // Judges one attention; null: none to judge alone.
  void (*one)(const Attention& attention, const Masks& masks,
              Evaluator& evaluator, std::vector<Finding>& findings) = nullptr;

  // Judges the model as a whole; null: nothing to judge.
  void (*all)(const Model& model, std::span<const Seen> seen,
              std::vector<Finding>& findings) = nullptr;
};

extern const Rule kSoftmaxAxis;
extern const Rule kMaskAfterSoftmax;
extern const Rule kMaskTriangle;
extern const Rule kMaskFinite;
extern const Rule kMaskMissing;

std::span<const Rule* const> all_rules();
const Rule* find_rule(std::string_view id);  // Null: no such rule.

}  // namespace attnguard::lint

#endif  // ATTNGUARD_CI_LINT_RULE_H_
