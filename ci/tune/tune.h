// What tolerances an engine needs, and what they still see. Behind
// `attnguard tune`.
#ifndef ATTNGUARD_CI_TUNE_TUNE_H_
#define ATTNGUARD_CI_TUNE_TUNE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "guard/engine/engine.h"
#include "guard/policy/policy.h"

namespace attnguard {

// Checks whose tolerance is an absolute difference of outputs, weights or row
// sums. The others judge exactly: there is nothing to tune.
std::span<const std::string_view> tuned_checks();
bool is_tuned(std::string_view check);

// What one check measured in one dtype.
struct Measurement {
  std::string check;
  Dtype dtype = Dtype::kFp32;
  std::int64_t judged = 0;  // Runs of the check: problems times seeds.
  double error = 0;         // The largest; 0: every bit as expected.
  std::string probe;        // Where it was,
  std::string problem;      // and on which problem.
  bool auto_holds = true;   // The derived bound covers it everywhere.
  double tolerance = 0;     // error times the margin, rounded up.

  // The smallest fault that the check sees under the tolerance, planted into
  // an exact computation: nullopt where it sees none. See smallest_faults.
  std::optional<double> leak, dropped, mass;
};

// A check that is violated and gets no tolerance.
struct Defective {
  std::string check;
  std::string problem;
  std::string message;

  // No rounding explains it. Otherwise it is rounding that the engine does not
  // declare, in a check that has no tolerance to tune.
  bool beyond_rounding = true;
};

struct Measured {
  std::vector<Measurement> measurements;  // By check, then dtype; error > 0.
  std::vector<Defective> defective;       // The first of each check.
  std::string engine_error;   // The engine failed; nothing else counts then.
  std::int64_t problems = 0;  // That the engine ran.
};

struct TuneOptions {
  double margin = 2;
  int repeats = 1;  // Seeds, from the policy's on.
  int threads = 0;
  std::function<void(std::size_t done, std::size_t total)> progress;
};

// Runs every problem of the policy: once as it is judged today, and once with
// nothing tolerated, which shows the size of each error.
Measured measure(const Engine& engine, const Policy& policy,
                 const TuneOptions& options);

// The smallest weight of a key that a row must not see (leak) or must
// (dropped), and the smallest relative error of a row's sum, that the check
// sees under the tolerance; to two digits, on 64 tokens.
void find_smallest_faults(Measurement& measurement);

// A known defect that a tolerance hides.
struct HiddenDefect {
  std::string defect;
  std::string problem;
  std::vector<std::string> checks;  // Those that saw it before.
};

// Of the known defects those that `before` catches and `after` does not, on
// their own problems in the dtypes given that the engine supports.
std::vector<HiddenDefect> hidden_defects(const Engine& engine,
                                         const Settings& before,
                                         const Settings& after,
                                         std::span<const Dtype> dtypes);

// The value times the margin, rounded up to two digits.
double with_margin(double error, double margin);

}  // namespace attnguard

#endif  // ATTNGUARD_CI_TUNE_TUNE_H_
