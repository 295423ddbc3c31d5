// `engine`, the one live check that the guard does not make itself: what it is
// told of is counted and handed to the sink.
#include "guard/runtime/engine_report.h"

#include <algorithm>

#include "guard/runtime/state.h"

namespace attnguard {
namespace runtime_internal {
namespace {

std::int64_t all_findings(const EngineReport& report) {
  return std::max(report.num_findings,
                  static_cast<std::int64_t>(report.findings.size()));
}

// Whether a dump can have the tensors of the reported call.
bool tensors_are_readable(const GuardState& state, const AttentionCall* call) {
  if (state.hooks.memory && !state.hooks.memory->host_accessible())
    return false;
  return call != nullptr && usable_call(*call) && call->query.data != nullptr;
}

}  // namespace

void GuardState::tell_sink(const Shard& shard, const Layer& layer,
                           const EngineReport& report, ActionSet actions) {
  const ObserveContext nothing;
  Violation violation;
  violation.check = LiveCheck::kEngine;
  violation.severity = layer.settings.check(LiveCheck::kEngine).severity;
  violation.actions = actions;
  violation.layer = layer.name;
  violation.layer_group = layer.group;
  violation.findings = report.findings;
  violation.num_findings = all_findings(report);
  violation.engine_check = report.check;
  violation.engine_text = report.text.substr(0, EngineReport::kMostText);
  violation.context = report.context != nullptr ? report.context : &nothing;
  if (tensors_are_readable(*this, report.call)) {
    const Problem& problem = *report.call->problem;
    violation.call = report.call;
    violation.numerics = layer.options.numerics
                             ? layer.options.numerics(problem)
                             : default_numerics(problem);
  }
  violation.settings = &layer.settings;
  violation.seed = policy.seed;
  // The call is observed after it was reported on, if at all.
  violation.call_number = shard.slots[layer.index].looks + 1;
  hooks.sink->on_violation(violation);
}

void GuardState::report(Shard& shard, const Layer& layer,
                        const EngineReport& report, Observed& seen) {
  CheckTally& tally = shard.tally.check(LiveCheck::kEngine);
  tally.runs.add(1);
  tally.violations.add(1);
  tally.findings.add(static_cast<std::uint64_t>(all_findings(report)));
  shard.tally
      .groups[layer.group_index][static_cast<std::size_t>(LiveCheck::kEngine)]
      .add(1);
  seen.checks = seen.violations = 1;
  seen.actions = layer.settings.check(LiveCheck::kEngine).actions &
                 ~ActionSet{kActionFallback};
  if (!hooks.sink) return;
  try {
    tell_sink(shard, layer, report, seen.actions);
  } catch (...) {
    // LayerOptions::numerics is the host's.
    tally.skip(SkipReason::kGuardError);
  }
}

}  // namespace runtime_internal

Observed Guard::report(LayerHandle layer, const EngineReport& report) noexcept {
  Observed seen;
  if (report.findings.empty() || layer.index >= state_->layers.size())
    return seen;
  const runtime_internal::Layer& its = state_->layers.at(layer.index);
  if (!its.settings.is_on(LiveCheck::kEngine)) return seen;
  try {
    state_->report(state_->shard(), its, report, seen);
  } catch (...) {
    // No memory for the thread's shard, and so nowhere to count.
  }
  return seen;
}

}  // namespace attnguard
