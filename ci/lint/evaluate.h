// Computes the parts of a graph that do not depend on its inputs' values:
// masks made of constants, Range, Trilu and comparisons.
#ifndef ATTNGUARD_CI_LINT_EVALUATE_H_
#define ATTNGUARD_CI_LINT_EVALUATE_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ci/lint/graph.h"

namespace attnguard::lint {

// Dense, row major. NaN stands for a number that only a run would know, such
// as a sequence length.
struct Array {
  int type = 0;
  Dims dims;
  std::vector<double> values;

  bool known() const;    // No NaN in it.
  bool uniform() const;  // Known, and the same number everywhere.
  std::int64_t rank() const { return static_cast<std::int64_t>(dims.size()); }
};

using ArrayPtr = std::shared_ptr<const Array>;

class Evaluator {
 public:
  // A length that only a run knows is taken as this.
  static constexpr std::int64_t kNominal = 8;
  static constexpr std::int64_t kMostElements = std::int64_t{1} << 26;

  // Null: depends on the inputs' values, or is nothing we can compute.
  ArrayPtr evaluate(const Graph& graph, const std::string& value);

  // The rank of a value, from what the file says or from the operators.
  std::optional<std::int64_t> rank(const Graph& graph,
                                   const std::string& value);

  // Frees what was computed; the notes stay.
  void forget() {
    known_.clear();
    held_ = 0;
  }

  // Constants that were asked for and could not be read, and why.
  const std::set<std::string>& notes() const { return notes_; }

 private:
  using Key = std::pair<const Graph*, std::string>;

  ArrayPtr compute(const Graph& graph, const std::string& value, int depth);
  ArrayPtr input(const Node& node, std::size_t index, int depth);
  ArrayPtr apply(const Node& node, int depth);
  ArrayPtr apply_shape(const Node& node, int depth);
  ArrayPtr load(const Tensor& tensor);
  std::optional<std::int64_t> rank_at(const Graph& graph,
                                      const std::string& value, int depth);

  static constexpr std::int64_t kMostHeld = std::int64_t{1} << 28;

  std::map<Key, ArrayPtr> known_;
  std::int64_t held_ = 0;  // Elements of all of them.
  std::set<std::string> notes_;
};

}  // namespace attnguard::lint

#endif  // ATTNGUARD_CI_LINT_EVALUATE_H_
