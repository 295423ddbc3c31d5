// One problem of a diagnosis: the battery's calls, what the engine returned,
// and how candidates fare against it.
#ifndef ATTNGUARD_GUARD_DIAGNOSIS_TRIAL_H_
#define ATTNGUARD_GUARD_DIAGNOSIS_TRIAL_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "guard/diagnosis/battery.h"
#include "guard/diagnosis/candidate.h"

namespace attnguard {

// An explanation that agrees with the engine so many times closer than another
// wins, where the other one is off by more than rounding of weights and output.
inline constexpr double kClearlyCloser = 16;

// How a candidate fares.
struct Standing {
  const Candidate* candidate = nullptr;
  bool alive = true;  // It has reproduced every call so far.
  int reproduced = 0;
  int telling_reproduced = 0;
  double difference = 0;  // Largest of the calls that it reproduced.
  double roundings = 0;   // The same in units of Trial::in_roundings.

  // Where it was lost; empty while it is alive.
  std::string lost_by;

  bool is_defect() const { return candidate->defect != nullptr; }
  std::string name() const;
};

using Standings = std::vector<Standing>;

bool any_alive(const Standings& standings);
std::size_t count_alive(const Standings& standings);

// "2e-07", or "a NaN or an infinity".
std::string amount(double difference);

class Trial {
 public:
  Trial(const Problem& problem, const Numerics& numerics, std::uint64_t seed,
        const BatteryCalls& calls);
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  const Problem& problem() const { return battery_.problem(); }
  int calls() const { return battery_.size(); }
  int telling() const {
    return static_cast<int>(std::count(telling_.begin(), telling_.end(), true));
  }

  const std::vector<Convention>& conventions() const { return conventions_; }

  // Runs the engine and finds out which calls are telling: those that a
  // correct engine does not reproduce, or from which it is so far, with bounds
  // that are wide, that a closer explanation is preferred. False when the
  // engine fails.
  bool record(const Engine& engine);

  // Whether the engine lets NaN through from places that no row may read: the
  // call with NaN there is telling.
  bool spreads_unused_nan() const;

  // Ends every candidate at its first call that it does not reproduce; telling
  // calls come first, since most end there.
  void knock_out(Standings& standings);

  // Compares every candidate with every call, whether or not it fails.
  void count(Standings& standings);

  // The first two that are alive and differ on this problem, whatever the
  // engine does; {nullptr, nullptr} when there are none.
  std::pair<const Standing*, const Standing*> first_split(
      const Standings& standings);

 private:
  // A difference in multiples of what rounding of weights and output explains
  // at the largest value, storage errors left out.
  double in_roundings(const Likeness& likeness) const;

  static std::size_t index(int call) { return static_cast<std::size_t>(call); }

  template <typename Use>
  bool judge(int call, Use use) {
    return replay_.with_call(call, [&](const ReplayedCall& inputs) {
      use(CallJudge(battery_, inputs, numerics_, conventions_));
    });
  }

  bool compare(const CallJudge& judge, int call, Standing& one);
  std::vector<int> telling_first() const;

  Numerics numerics_;
  Battery battery_;
  std::vector<Convention> conventions_;
  Replay replay_;
  std::vector<std::vector<double>> outputs_;
  std::vector<bool> telling_;
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_DIAGNOSIS_TRIAL_H_
