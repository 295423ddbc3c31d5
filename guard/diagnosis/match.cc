#include "guard/diagnosis/match.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "guard/diagnosis/battery.h"
#include "guard/diagnosis/candidate.h"
#include "guard/diagnosis/further_problems.h"

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

// An explanation that agrees with the engine so many times closer than another
// wins, where the other one is off by more than rounding of weights and output.
constexpr double kClearlyCloser = 16;

using Clock = std::chrono::steady_clock;

double work_of(const Problem& problem) {
  double pairs = 0;
  for (std::int64_t b = 0; b < problem.batch; ++b)
    pairs += static_cast<double>(problem.len_q(b)) *
             static_cast<double>(problem.len_kv(b));
  return pairs * static_cast<double>(problem.num_heads) *
         static_cast<double>(problem.head_dim_qk + problem.head_dim_v);
}

// How a candidate fares.
struct Standing {
  const Candidate* candidate = nullptr;
  bool alive = true;  // It has reproduced every call so far.
  int reproduced = 0;
  int telling_reproduced = 0;
  double difference = 0;  // Largest of the calls that it reproduced.
  double roundings = 0;   // The same in units of in_roundings.

  // Where it was lost; empty while it is alive.
  std::string lost_by;

  bool is_defect() const { return candidate->defect != nullptr; }
  std::string name() const {
    if (is_defect()) return std::string(candidate->defect->id);
    return candidate->convention.empty()
               ? "a correct engine"
               : "the reading '" + candidate->convention + "'";
  }
};

using Standings = std::vector<Standing>;

bool any_alive(const Standings& standings) {
  return std::any_of(standings.begin(), standings.end(),
                     [](const Standing& one) { return one.alive; });
}

std::size_t count_alive(const Standings& standings) {
  return static_cast<std::size_t>(
      std::count_if(standings.begin(), standings.end(),
                    [](const Standing& one) { return one.alive; }));
}

std::string amount(double difference) {
  if (std::isinf(difference)) return "a NaN or an infinity";
  char text[32];
  std::snprintf(text, sizeof(text), "%.2g", difference);
  return text;
}

// One problem: the battery's calls, and what the engine returned.
class Trial {
 public:
  Trial(const Problem& problem, const Numerics& numerics, std::uint64_t seed,
        const SideFeatures& features)
      : numerics_(numerics),
        battery_(problem, numerics, seed, features),
        conventions_(alternative_conventions(problem)),
        replay_(battery_) {}
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
  bool record(const Engine& engine) {
    auto outputs = record_outputs(engine, battery_);
    if (!outputs) return false;
    outputs_ = std::move(*outputs);
    telling_.assign(outputs_.size(), false);
    const Candidate reference = reference_candidate();
    for (int call = 0; call < calls(); ++call)
      if (!judge(call, [&](const CallJudge& judge) {
            const Likeness likeness =
                judge.compare(reference, outputs_[index(call)]);
            telling_[index(call)] =
                !likeness.same || in_roundings(likeness) > kClearlyCloser;
          }))
        return false;
    return true;
  }

  // Ends every candidate at its first call that it does not reproduce; telling
  // calls come first, since most end there.
  void knock_out(Standings& standings) {
    for (int call : telling_first()) {
      if (!any_alive(standings)) return;
      judge(call, [&](const CallJudge& judge) {
        for (Standing& one : standings)
          if (one.alive) one.alive = compare(judge, call, one);
      });
    }
  }

  // Compares every candidate with every call, whether or not it fails.
  void count(Standings& standings) {
    for (int call = 0; call < calls(); ++call)
      judge(call, [&](const CallJudge& judge) {
        for (Standing& one : standings) compare(judge, call, one);
      });
  }

  // The first two that are alive and differ on this problem, whatever the
  // engine does; {nullptr, nullptr} when there are none.
  std::pair<const Standing*, const Standing*> first_split(
      const Standings& standings) {
    std::pair<const Standing*, const Standing*> found{};
    for (int call = 0; call < calls() && found.first == nullptr; ++call)
      judge(call, [&](const CallJudge& judge) {
        const Standing* first = nullptr;
        std::vector<double> rows;
        for (const Standing& one : standings) {
          if (!one.alive) continue;
          if (first == nullptr) {
            first = &one;
            rows = judge.numbers_of(*one.candidate);
          } else if (!judge.compare(*one.candidate, rows).same) {
            found = {first, &one};
            return;
          }
        }
      });
    return found;
  }

 private:
  // A difference in multiples of what rounding of weights and output explains
  // at the largest value, storage errors left out.
  double in_roundings(const Likeness& likeness) const {
    return likeness.relative / (4 * (unit_roundoff(numerics_.probability) +
                                     unit_roundoff(problem().output_dtype())));
  }

  static std::size_t index(int call) { return static_cast<std::size_t>(call); }

  template <typename Use>
  bool judge(int call, Use use) {
    return replay_.with_call(call, [&](const ReplayedCall& inputs) {
      use(CallJudge(battery_, inputs, numerics_, conventions_));
    });
  }

  bool compare(const CallJudge& judge, int call, Standing& one) {
    const Likeness likeness =
        judge.compare(*one.candidate, outputs_[index(call)]);
    if (likeness.same) {
      ++one.reproduced;
      if (telling_[index(call)]) ++one.telling_reproduced;
      one.difference = std::max(one.difference, likeness.difference);
      one.roundings = std::max(one.roundings, in_roundings(likeness));
    } else if (one.lost_by.empty()) {
      one.lost_by = "'" + battery_.plan().calls()[index(call)].name() +
                    "' on '" + problem().text() + "', where that differs by " +
                    amount(likeness.difference);
    }
    return likeness.same;
  }

  std::vector<int> telling_first() const {
    std::vector<int> order;
    for (const bool wanted : {true, false})
      for (int call = 0; call < calls(); ++call)
        if (telling_[index(call)] == wanted) order.push_back(call);
    return order;
  }

  Numerics numerics_;
  Battery battery_;
  std::vector<Convention> conventions_;
  Replay replay_;
  std::vector<std::vector<double>> outputs_;
  std::vector<bool> telling_;
};

// The whole comparison of one engine.
class Matcher {
 public:
  Matcher(const Engine& engine, std::uint64_t seed)
      : engine_(engine),
        features_(SideFeatures::of(engine)),
        seed_(seed),
        start_(Clock::now()) {}

  std::optional<Diagnosis> run(const Problem& smallest,
                               const Problem& original) {
    const Trial* trial = record(smallest);
    if (trial == nullptr) return std::nullopt;
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
                                         seed_, features_);
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
          seed_, features_);
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
  SideFeatures features_;
  std::uint64_t seed_;
  Clock::time_point start_;
  std::vector<std::unique_ptr<Trial>> trials_;  // The failing problems.
  std::vector<Candidate> candidates_;
  Standings standings_;
  Diagnosis diagnosis_;
};

}  // namespace

std::optional<Diagnosis> diagnose(const Engine& engine, const Problem& smallest,
                                  const Problem& original, std::uint64_t seed) {
  return Matcher(engine, seed).run(smallest, original);
}

}  // namespace attnguard
