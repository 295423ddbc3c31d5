#include "guard/diagnosis/trial.h"

#include <cmath>
#include <cstdio>

namespace attnguard {

std::string Standing::name() const {
  if (is_defect()) return std::string(candidate->defect->id);
  return candidate->convention.empty()
             ? "a correct engine"
             : "the reading '" + candidate->convention + "'";
}

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

Trial::Trial(const Problem& problem, const Numerics& numerics,
             std::uint64_t seed, const BatteryCalls& calls)
    : numerics_(numerics),
      battery_(problem, numerics, seed, calls),
      conventions_(alternative_conventions(problem)),
      replay_(battery_) {}

bool Trial::record(const Engine& engine) {
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

bool Trial::spreads_unused_nan() const {
  for (int call = 0; call < calls(); ++call)
    if (telling_[index(call)] &&
        battery_.plan().calls()[index(call)].mode.unused == UnusedFill::kNan)
      return true;
  return false;
}

void Trial::knock_out(Standings& standings) {
  for (int call : telling_first()) {
    if (!any_alive(standings)) return;
    judge(call, [&](const CallJudge& judge) {
      for (Standing& one : standings)
        if (one.alive) one.alive = compare(judge, call, one);
    });
  }
}

void Trial::count(Standings& standings) {
  for (int call = 0; call < calls(); ++call)
    judge(call, [&](const CallJudge& judge) {
      for (Standing& one : standings) compare(judge, call, one);
    });
}

std::pair<const Standing*, const Standing*> Trial::first_split(
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

double Trial::in_roundings(const Likeness& likeness) const {
  return likeness.relative / (4 * (unit_roundoff(numerics_.probability) +
                                   unit_roundoff(problem().output_dtype())));
}

bool Trial::compare(const CallJudge& judge, int call, Standing& one) {
  const Likeness likeness =
      judge.compare(*one.candidate, outputs_[index(call)]);
  if (likeness.same) {
    ++one.reproduced;
    if (telling_[index(call)]) ++one.telling_reproduced;
    one.difference = std::max(one.difference, likeness.difference);
    one.roundings = std::max(one.roundings, in_roundings(likeness));
  } else if (one.lost_by.empty()) {
    one.lost_by = "'" + battery_.plan().calls()[index(call)].name() + "' on '" +
                  problem().text() + "', where that differs by " +
                  amount(likeness.difference);
  }
  return likeness.same;
}

std::vector<int> Trial::telling_first() const {
  std::vector<int> order;
  for (const bool wanted : {true, false})
    for (int call = 0; call < calls(); ++call)
      if (telling_[index(call)] == wanted) order.push_back(call);
  return order;
}

}  // namespace attnguard
