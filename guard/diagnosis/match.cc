#include "guard/diagnosis/match.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "guard/diagnosis/further_problems.h"
#include "guard/diagnosis/trial.h"

namespace attnguard {
namespace {

// Multiply-adds of one call of the reference. Every candidate costs about as
// much, and there are more than a hundred.
constexpr double kMostWork = 2e7;
// All candidates on all calls, for near misses: a few seconds.
constexpr double kMostNearMissWork = 4e9;
// Further problems: how many are looked at, how many the engine runs, and how
// much a look may cost.
constexpr std::size_t kMostLooks = 64;
constexpr int kMostFurtherRuns = 6;
constexpr double kMostLookWork = 2e8;
// A slow engine is not asked further. What was found stays found.
constexpr std::chrono::seconds kMostEngineTime{10};

constexpr std::size_t kMostExplanations = 5;
constexpr std::size_t kMostNearMisses = 3;

using Clock = std::chrono::steady_clock;

double work_of(const Problem& problem) {
  double pairs = 0;
  for (std::int64_t b = 0; b < problem.batch; ++b)
    pairs += static_cast<double>(problem.len_q(b)) *
             static_cast<double>(problem.len_kv(b));
  return pairs * static_cast<double>(problem.num_heads) *
         static_cast<double>(problem.head_dim_qk + problem.head_dim_v);
}

// The whole comparison of one engine.
class Matcher {
 public:
  Matcher(const Engine& engine, std::uint64_t seed, const BatteryCalls& calls)
      : engine_(engine), calls_(calls), seed_(seed), start_(Clock::now()) {}

  // Whether one of the problems says so.
  bool spreads_unused_nan() const { return spreads_unused_nan_; }

  std::optional<Diagnosis> run(const Problem& smallest,
                               const Problem& original) {
    const Trial* trial = record(smallest);
    if (trial == nullptr) return std::nullopt;
    spreads_unused_nan_ |= trial->spreads_unused_nan();
    if (trial->telling() == 0) return run_again(smallest, original);
    candidates_ = all_candidates(smallest);
    candidates_.push_back(reference_candidate());
    start_standings();
    trials_.back()->knock_out(standings_);
    take_in(*trial);
    prefer_the_closest();
    if (is_alive(&candidates_.back())) return run_again(smallest, original);
    // What explains the smallest case must explain the whole one: there may be
    // more wrong than shows in the smallest.
    if (any_alive(standings_) && !(original == smallest) &&
        record(original) != nullptr) {
      trials_.back()->knock_out(standings_);
      take_in(*trials_.back());
    }
    if (any_alive(standings_)) {
      tell_apart(original);
      prefer_the_closest();
      explain();
    } else {
      count_near_misses();
    }
    return std::move(diagnosis_);
  }

 private:
  // Nothing to explain on the smaller problem: perhaps there is on the other.
  std::optional<Diagnosis> run_again(const Problem& smallest,
                                     const Problem& original) {
    trials_.clear();
    diagnosis_ = {};
    if (smallest == original) return std::nullopt;
    return run(original, original);
  }

  void start_standings() {
    standings_.clear();
    for (const Candidate& candidate : candidates_)
      standings_.push_back({.candidate = &candidate, .lost_by = ""});
  }

  bool out_of_time() const { return Clock::now() - start_ > kMostEngineTime; }

  // Its calls count.
  void take_in(const Trial& trial) {
    diagnosis_.calls += trial.calls();
    diagnosis_.telling_calls += trial.telling();
    diagnosis_.problems.push_back(trial.problem().text());
  }

  // The engine on a failing problem; nullptr when that is too large, or when
  // it fails.
  const Trial* record(const Problem& problem) {
    if (work_of(problem) > kMostWork || out_of_time()) return nullptr;
    auto trial = std::make_unique<Trial>(problem, numerics_of(engine_, problem),
                                         seed_, calls_);
    if (!trial->record(engine_)) return nullptr;
    trials_.push_back(std::move(trial));
    return trials_.back().get();
  }

  std::vector<const Defect*> alive_defects() const {
    std::vector<const Defect*> defects;
    for (const Standing& one : standings_)
      if (one.alive && one.is_defect())
        defects.push_back(one.candidate->defect);
    return defects;
  }

  void tell_apart(const Problem& failing) {
    if (count_alive(standings_) < 2) return;
    struct Wanted {
      const Candidate *one, *other;
      std::string text;
    };
    std::vector<Wanted> wanted;  // Problems that the engine cannot run.
    std::size_t looks = 0;
    int runs = 0;
    for (const Problem& problem :
         further_problems(engine_, failing, alive_defects())) {
      const double work =
          work_of(problem) * static_cast<double>(count_alive(standings_));
      const std::string line = problem.text();
      if (work > kMostLookWork || has_run_on(line)) continue;
      if (count_alive(standings_) < 2 || ++looks > kMostLooks ||
          runs == kMostFurtherRuns || out_of_time())
        break;
      const bool runs_here = unsupported_reason(engine_, problem).empty();
      Trial trial(
          problem,
          runs_here ? numerics_of(engine_, problem) : default_numerics(problem),
          seed_, calls_);
      const auto [one, other] = trial.first_split(standings_);
      if (one == nullptr) continue;
      if (!runs_here) {
        wanted.push_back({one->candidate, other->candidate,
                          "run problem '" + line + "' to tell " + one->name() +
                              " from " + other->name()});
        continue;
      }
      ++runs;
      if (!trial.record(engine_)) continue;
      Standings decided = standings_;
      trial.knock_out(decided);
      // When none is left the engine does something else here as well; that
      // says nothing about the failing problem.
      if (!any_alive(decided)) continue;
      standings_ = std::move(decided);
      take_in(trial);
    }
    for (const Wanted& want : wanted)
      if (diagnosis_.probe_needed.empty() && is_alive(want.one) &&
          is_alive(want.other))
        diagnosis_.probe_needed = want.text;
  }

  bool is_alive(const Candidate* candidate) const {
    return std::any_of(standings_.begin(), standings_.end(),
                       [&](const Standing& one) {
                         return one.candidate == candidate && one.alive;
                       });
  }

  bool has_run_on(const std::string& line) const {
    return std::find(diagnosis_.problems.begin(), diagnosis_.problems.end(),
                     line) != diagnosis_.problems.end();
  }

  // Where bounds are wide (coarse storage), one explanation may still agree to
  // the last bits and another only within the bound.
  void prefer_the_closest() {
    double best = HUGE_VAL;
    for (const Standing& one : standings_)
      if (one.alive) best = std::min(best, one.roundings);
    for (Standing& one : standings_) {
      if (!one.alive || one.roundings <= kClearlyCloser * std::max(best, 1.0))
        continue;
      one.alive = false;
      one.lost_by =
          "closeness: that agrees only within " + amount(one.difference);
    }
  }

  std::string statement_of(const Standing& one) const {
    for (const Convention& convention : trials_.front()->conventions())
      if (convention.id == one.candidate->convention)
        return convention.statement;
    return {};
  }

  Explanation explanation_of(const Standing& one) const {
    Explanation explanation;
    explanation.calls_reproduced = one.reproduced;
    explanation.reproduces_all = one.alive;
    explanation.largest_difference = one.difference;
    if (!one.is_defect()) {
      explanation.convention = statement_of(one);
      explanation.summary = "reads the problem in another way";
      return explanation;
    }
    const Defect& defect = *one.candidate->defect;
    explanation.id = defect.id;
    explanation.summary = defect.summary;
    explanation.cls = defect_class_name(defect.cls);
    for (std::string_view report : defect.reports)
      if (!report.empty()) explanation.reports.emplace_back(report);
    return explanation;
  }

  // All that are alive; a reading and the first defect are one when both
  // explain the same.
  void explain() {
    for (const Standing& one : standings_) {
      if (!one.alive) continue;
      auto& explanations = diagnosis_.explanations;
      if (one.is_defect()) {
        diagnosis_.equally_good.emplace_back(one.candidate->defect->id);
        explanations.push_back(explanation_of(one));
      } else if (!explanations.empty() && !explanations.front().id.empty() &&
                 !explanations.front().is_convention()) {
        explanations.front().convention = statement_of(one);
      } else {
        explanations.push_back(explanation_of(one));
      }
    }
    auto& explanations = diagnosis_.explanations;
    if (explanations.size() == 1)
      explanations.front().told_apart = told_apart();
    if (explanations.size() > kMostExplanations)
      explanations.resize(kMostExplanations);
  }

  // The one that was lost last, and where.
  std::string told_apart() const {
    const Standing* rival = nullptr;
    for (const Standing& one : standings_)
      if (!one.alive && one.reproduced > 0 &&
          (rival == nullptr || one.reproduced > rival->reproduced))
        rival = &one;
    if (rival == nullptr) return {};
    return "told from " + rival->name() + " by " + rival->lost_by;
  }

  // Over the failing problems: what comes close there.
  void count_near_misses() {
    double work = 0;
    for (const auto& trial : trials_)
      work += work_of(trial->problem()) * static_cast<double>(trial->calls()) *
              static_cast<double>(candidates_.size());
    if (work > kMostNearMissWork) return;
    candidates_.pop_back();  // What is correct is no near miss.
    start_standings();
    for (const auto& trial : trials_) trial->count(standings_);
    std::stable_sort(standings_.begin(), standings_.end(),
                     [](const Standing& a, const Standing& b) {
                       return std::pair(a.telling_reproduced, a.reproduced) >
                              std::pair(b.telling_reproduced, b.reproduced);
                     });
    for (Standing& one : standings_) {
      if (diagnosis_.explanations.size() == kMostNearMisses ||
          one.telling_reproduced == 0)
        break;
      one.alive = false;
      diagnosis_.explanations.push_back(explanation_of(one));
    }
  }

  const Engine& engine_;
  BatteryCalls calls_;
  std::uint64_t seed_;
  Clock::time_point start_;
  std::vector<std::unique_ptr<Trial>> trials_;  // The failing problems.
  std::vector<Candidate> candidates_;
  Standings standings_;
  Diagnosis diagnosis_;
  bool spreads_unused_nan_ = false;
};

}  // namespace

std::optional<Diagnosis> diagnose(const Engine& engine, const Problem& smallest,
                                  const Problem& original, std::uint64_t seed) {
  BatteryCalls calls = BatteryCalls::of(engine);
  Matcher matcher(engine, seed, calls);
  const std::optional<Diagnosis> diagnosis = matcher.run(smallest, original);
  if (!matcher.spreads_unused_nan() || !diagnosis ||
      !diagnosis->equally_good.empty())
    return diagnosis;
  // Many kernels multiply what they mask by 0, which NaN survives. Beside
  // another fault that is one more, and no defect has two.
  calls.unused_nan = false;
  std::optional<Diagnosis> without =
      Matcher(engine, seed, calls).run(smallest, original);
  if (!without || without->explanations.empty() ||
      !without->explanations.front().reproduces_all)
    return diagnosis;
  for (Explanation& one : without->explanations)
    one.told_apart += (one.told_apart.empty() ? "" : "; ") +
                      std::string(
                          "and NaN in unused places reaches the output as well "
                          "(unused-slots-nan)");
  return without;
}

}  // namespace attnguard
