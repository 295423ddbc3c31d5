// What is added to, multiplied with or put in place of scores or weights,
// taken apart into masks.
#ifndef ATTNGUARD_CI_LINT_MASKS_H_
#define ATTNGUARD_CI_LINT_MASKS_H_

#include "ci/lint/attention.h"

namespace attnguard::lint {

enum class Meaning {
  kAdditive,  // A large negative number masks.
  kAllowed,   // True (or 1) may attend.
  kMasked,    // True (or 1) may not.
};

// One mask of several that a value combines.
struct MaskTerm {
  const Node* node = nullptr;  // Where the attention takes the mask.
  std::string value;           // The mask's own name.
  Meaning meaning = Meaning::kAdditive;
  Axes axes;

  ArrayPtr array;  // Null: known only at a run.
};

// A number that stands for minus infinity.
struct Fill {
  const Node* node = nullptr;
  double value = 0;
  int type = 0;        // Of the scores where it is applied.
  bool added = false;  // Added to a score rather than put in its place.
};

struct Masks {
  std::vector<MaskTerm> terms;
  std::vector<Fill> fills;

  // Something that is, or may be, a mask.
  bool any() const { return !terms.empty(); }
};

// Masks before the Softmax, or those that a fused node is given.
Masks masks_before(const Attention& attention, Evaluator& evaluator);

// The number that masks in an additive mask; nullopt: it masks nothing, but
// is a bias such as ALiBi's.
std::optional<double> sentinel_of(const Array& array);

// Names of the inputs and constants that the value is made of, without
// shapes; and whether it looks like a mask.
struct Origin {
  std::set<std::string> sources;
  bool mask_like = false;  // A comparison, triangle, bool or input "*mask*".
  bool random = false;     // A dropout's.
  bool guard = false;      // IsNaN, or a comparison of the scores themselves.
};
Origin origin_of(const Graph& graph, const std::string& value,
                 Evaluator& evaluator);

}  // namespace attnguard::lint

#endif  // ATTNGUARD_CI_LINT_MASKS_H_
