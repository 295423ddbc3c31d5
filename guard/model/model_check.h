// A property of a whole model. Unlike a check of attention (guard/check), it
// drives the model itself: the calls depend on each other through the cache.
//
// Adding one: a file in this folder that defines a ModelCheckInfo, and a line
// in model_check_table.h and .cc.
#ifndef ATTNGUARD_GUARD_MODEL_MODEL_CHECK_H_
#define ATTNGUARD_GUARD_MODEL_MODEL_CHECK_H_

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "guard/finding/finding.h"
#include "guard/model/runner.h"
#include "guard/model/verify_model.h"

namespace attnguard {

using Tokens = std::vector<std::int32_t>;

// How much one token moves the logits of later ones, and how much of it the
// bound for rounding would hide.
struct Sensitivity {
  double median = 0;         // |change| of a row's largest-moved logit.
  double median_bounds = 0;  // The same in units of the row's bound.
};

// Collects findings: counts all, keeps the first 50, one per kind, sequence and
// position.
class ModelFindings {
 public:
  void add(Finding finding);
  bool empty() const { return count_ == 0; }
  void move_to(CheckResult& result);

 private:
  std::vector<Finding> kept_;
  std::set<std::tuple<FindingKind, std::int64_t, std::int64_t>> seen_;
  std::int64_t count_ = 0;
};

// What the checks of one model share.
class ModelCheckContext {
 public:
  // Model and options outlive it. prepare() comes first.
  ModelCheckContext(const Model& model, const ModelOptions& options);

  // Runs the text once (more often to measure the noise of a model that is
  // not deterministic).
  Status prepare();

  const Model& model;
  const ModelOptions& options;
  ModelRunner runner;
  Tokens tokens;  // The text.
  Logits base;    // Its logits in one pass.
  std::optional<LossGap> loss;

  // Other tokens from `cut` on, a different one at each position.
  Tokens replaced_from(std::int64_t cut, std::uint64_t variant) const;
  // Another text of `size` tokens.
  Tokens other_text(std::int64_t size, std::uint64_t variant) const;

  // Largest difference that passes. Of the same calls on the same shapes: 0,
  // or what the noise of a non-deterministic model explains; otherwise what
  // rounding explains as well, for a row of that scale.
  double exact_bound() const;
  double bound(double scale) const;
  bool differs_exactly(const RowDifference& difference) const;
  bool differs(const RowDifference& difference) const;

  // Measured once.
  Result<Sensitivity> sensitivity();

  std::int64_t length() const {
    return static_cast<std::int64_t>(tokens.size());
  }

 private:
  double noise_ = 0;  // Largest difference between repeats.
  std::optional<Sensitivity> sensitivity_;
};

// Why comparing one pass with single tokens says nothing of a model.
inline constexpr const char* kOneTokenAtATime =
    "the model takes one token at a time: there is no other pass to compare";

struct ModelCheckInfo {
  std::string_view id;           // kebab-case
  std::string_view summary;      // One line.
  std::string_view cost;         // "10 calls"
  std::string_view explanation;  // The page that `explain` prints.

  // Empty when the property says something about this model, else why not.
  std::string (*not_applicable)(const Model& model);

  // Fills verdict, note, coverage and findings. A status that is not ok is an
  // error of the model.
  Status (*run)(ModelCheckContext& context, CheckResult& result);
};

// Every check, in the order of reports; by its id (nullptr: there is none);
// and the ids, for suggestions.
std::span<const ModelCheckInfo* const> all_model_checks();
const ModelCheckInfo* find_model_check(std::string_view id);
std::vector<std::string_view> model_check_ids();

// Compares rows [begin, begin + a.rows()) of a sequence, computed in two ways
// that may round unlike.
class BoundedComparison {
 public:
  BoundedComparison(ModelCheckContext& context, std::string how)
      : probe(std::move(how)), context_(context) {}

  // Row i of `seen` against row i of `expected`, whose other rows are left
  // out. `way` says how `seen` came about: "in pieces of 5".
  void rows(const Logits& seen, const Logits& expected, const std::string& way,
            std::int64_t sequence = 0);

  // The verdict: inconclusive if one token moves the logits by less than
  // twice the bound, so that nothing could have been seen.
  Status conclude(CheckResult& result);

  ModelFindings findings;

  // Of the findings to come: "token-by-token", and what `expected` is.
  std::string probe;
  std::string reference = "of one pass over the text";

 private:
  ModelCheckContext& context_;
  double largest_bounds_ = 0;  // Of all differences, in units of the bound.
  std::int64_t rows_ = 0;
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_MODEL_MODEL_CHECK_H_
