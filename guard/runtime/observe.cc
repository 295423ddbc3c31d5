// Looking at one call: which checks can be afforded, and what follows from
// what they find.
#include <algorithm>

#include "guard/runtime/state.h"

namespace attnguard {

std::string describe(const Violation& violation) {
  std::string text(violation.layer);
  text += ": ";
  text += live_check_id(violation.check);
  if (!violation.engine_check.empty()) {
    text += ": ";
    text += violation.engine_check;
  }
  if (!violation.findings.empty())
    text += ": " + violation.findings.front().message;
  if (violation.num_findings > 1)
    text += " (and " + std::to_string(violation.num_findings - 1) + " more)";
  return text;
}

namespace runtime_internal {
namespace {

constexpr std::size_t kPassive = 4;  // The first of live_checks().

class Look {
 public:
  Look(GuardState& state, Shard& shard, const Layer& layer,
       const AttentionCall& call, const ObserveContext& context)
      : state_(state),
        shard_(shard),
        layer_(layer),
        call_(call),
        context_(context),
        slot_(shard.slots[layer.index]) {}

  Observed run() {
    const std::int64_t start = monotonic_now();
    ++slot_.looks;
    if (const std::optional<SkipReason> reason = unusable())
      skip_all(*reason);
    else
      judge();
    const std::int64_t now = monotonic_now();
    // What was not spent on a check yet: looking at the call, choosing.
    shard_.budget.spend(now, now - start - spent_ - exempt_);
    shard_.tally.overhead_ns.add(
        static_cast<std::uint64_t>(now - start - exempt_));
    return seen_;
  }

 private:
  std::optional<SkipReason> unusable() const {
    if (state_.hooks.memory && !state_.hooks.memory->host_accessible())
      return SkipReason::kDevice;
    if (!usable_call(call_)) return SkipReason::kUnsupported;
    return std::nullopt;
  }

  void skip(LiveCheck check, SkipReason reason) {
    if (layer_.settings.is_on(check)) shard_.tally.check(check).skip(reason);
  }
  void skip_all(SkipReason reason) {
    for (const LiveCheckInfo* info : live_checks()) skip(info->check, reason);
  }

  void judge() {
    const Problem& problem = *call_.problem;
    numerics_ = layer_.options.numerics ? layer_.options.numerics(problem)
                                        : default_numerics(problem);
    LiveCall live{call_,
                  problem,
                  context_,
                  numerics_,
                  layer_,
                  state_.sequences,
                  shard_,
                  shard_.draw(state_.policy.seed),
                  layer_.settings.rows};
    judge_passive(live);
    judge_active(live);
    if (seen_.checks > 0) shard_.tally.checked.add(1);
    if ((seen_.actions & kActionFallback) != 0) fall_back(live);
  }

  // In turn: the one that could not be afforded is the first the next time,
  // so that cheap ones do not spend what it saves for.
  void judge_passive(LiveCall& live) {
    slot_.expected_cost = 0;
    for (std::size_t step = 0; step < kPassive; ++step) {
      const std::size_t at = (shard_.next_passive + step) % kPassive;
      const LiveCheckInfo& info = *live_checks()[at];
      if (!layer_.settings.is_on(info.check)) continue;
      const double units = info.units(live);
      CostModel& cost = shard_.costs[at];
      const double one = cost.predict(units);
      const double room = shard_.budget.room(monotonic_now());
      if (one > shard_.budget.most()) {
        skip(info.check, SkipReason::kTooExpensive);
        cost.forget();
        continue;
      }
      if (one > room) {
        for (std::size_t rest = step; rest < kPassive; ++rest)
          skip(live_checks()[(shard_.next_passive + rest) % kPassive]->check,
               SkipReason::kBudget);
        shard_.next_passive = at;
        slot_.expected_cost = one;
        slot_.expected = info.check;
        cost.forget();
        return;
      }
      double times = 1;
      if (info.check == LiveCheck::kRecompute) {
        live.rows = std::clamp<std::int64_t>(
            static_cast<std::int64_t>(std::min(room / one, 1e6)), 1,
            layer_.settings.rows);
        times = static_cast<double>(live.rows);
      }
      const std::int64_t took = run_one(info, live);
      const std::int64_t now = monotonic_now();
      shard_.budget.spend(now, took);
      spent_ += took;
      cost.learn(units * times, took);
    }
    note_expected(live);
  }

  // What the next look must be able to afford.
  void note_expected(const LiveCall& live) {
    for (std::size_t step = 0; step < kPassive; ++step) {
      const std::size_t at = (shard_.next_passive + step) % kPassive;
      const LiveCheckInfo& info = *live_checks()[at];
      if (!layer_.settings.is_on(info.check)) continue;
      slot_.expected_cost = shard_.costs[at].predict(info.units(live));
      slot_.expected = info.check;
      return;
    }
  }

  void judge_active(const LiveCall& live) {
    turn_of_shadows();
    for (std::size_t at = kPassive; at < live_checks().size(); ++at) {
      const LiveCheckInfo& info = *live_checks()[at];
      if (!layer_.settings.is_on(info.check)) continue;
      if (context_.kernel == nullptr) {
        skip(info.check, SkipReason::kNoKernel);
        continue;
      }
      // The kernel would be told the mask by means that the guard has not.
      if (context_.mask != nullptr) {
        skip(info.check, SkipReason::kUnsupported);
        continue;
      }
      if (info.check == LiveCheck::kCanary)
        step_canary(live);
      else
        run_shadow(info, live);
    }
  }

  // Sets the bits of what is due; what could not be afforded stays due.
  void turn_of_shadows() {
    if (layer_.settings.shadow_every <= 0) return;
    if (--slot_.shadow_gap > 0) return;
    slot_.shadow_gap = layer_.settings.shadow_every;
    // The first look is a turn too: a bad build is found early.
    for (LiveCheck check : {LiveCheck::kLaterTokens, LiveCheck::kOnes})
      if (layer_.settings.is_on(check)) slot_.shadow_due |= bit(check);
  }

  static unsigned bit(LiveCheck check) {
    return 1u << static_cast<unsigned>(check);
  }

  void run_shadow(const LiveCheckInfo& info, const LiveCall& live) {
    if ((slot_.shadow_due & bit(info.check)) == 0) {
      skip(info.check, SkipReason::kNotDue);
      return;
    }
    CostModel& cost = shard_.costs[static_cast<std::size_t>(info.check)];
    const double units = info.units(live);
    if (cost.predict(units) > shard_.savings.room(monotonic_now())) {
      skip(info.check, SkipReason::kBudget);
      cost.forget();
      return;
    }
    slot_.shadow_due &= ~bit(info.check);
    const std::int64_t took = run_one(info, live);
    shard_.savings.spend(took);
    spent_ += took;
    cost.learn(units, took);
  }

  void step_canary(const LiveCall& live) {
    const std::int64_t start = monotonic_now();
    Judgement judgement{
        shard_.tally.check(LiveCheck::kCanary), {}, 0, {}, {}, {}};
    const CanaryStep step = state_.canary.step(
        live, start, shard_.savings.room(start), state_.policy.seed, judgement);
    const std::int64_t took = monotonic_now() - start;
    judgement.tally.nanoseconds.add(static_cast<std::uint64_t>(took));
    shard_.savings.spend(took);
    spent_ += took;
    if (step == CanaryStep::kDone)
      finish(LiveCheck::kCanary, judgement);
    else if (judgement.skipped)
      skip(LiveCheck::kCanary, *judgement.skipped);
  }

  std::int64_t run_one(const LiveCheckInfo& info, const LiveCall& live) {
    const std::int64_t start = monotonic_now();
    Judgement judgement{shard_.tally.check(info.check), {}, 0, {}, {}, {}};
    info.run(live, judgement);
    const std::int64_t took = monotonic_now() - start;
    judgement.tally.nanoseconds.add(static_cast<std::uint64_t>(took));
    finish(info.check, judgement);
    return took;
  }

  void finish(LiveCheck check, Judgement& judgement) {
    CheckTally& tally = judgement.tally;
    const auto found = static_cast<std::uint64_t>(judgement.sink.count());
    tally.rows.add(static_cast<std::uint64_t>(judgement.rows));
    if (judgement.skipped) tally.skip(*judgement.skipped);
    if (judgement.rows == 0 && found == 0) {
      if (!judgement.skipped) tally.skip(SkipReason::kNothingToJudge);
      return;
    }
    tally.runs.add(1);
    ++seen_.checks;
    if (found > 0) report(check, judgement);
  }

  // Telling the sink takes as long as the host makes it: no part of the
  // budget, as violations are not what is budgeted.
  void report(LiveCheck check, Judgement& judgement) {
    const std::int64_t start = monotonic_now();
    judgement.tally.violations.add(1);
    judgement.tally.findings.add(
        static_cast<std::uint64_t>(judgement.sink.count()));
    shard_.tally.groups[layer_.group_index][static_cast<std::size_t>(check)]
        .add(1);
    const LiveCheckSettings& settings = layer_.settings.check(check);
    ++seen_.violations;
    seen_.actions |= settings.actions;
    if (state_.hooks.sink) {
      Violation violation;
      violation.check = check;
      violation.severity = settings.severity;
      violation.actions = settings.actions;
      violation.layer = layer_.name;
      violation.layer_group = layer_.group;
      violation.num_findings = judgement.sink.count();
      const std::vector<Finding> findings = judgement.sink.take();
      violation.findings = findings;
      violation.call =
          judgement.scratch_call ? &*judgement.scratch_call : &call_;
      violation.in_scratch = judgement.scratch_call.has_value();
      violation.context = &context_;
      violation.numerics = numerics_;
      violation.settings = &layer_.settings;
      violation.seed = state_.policy.seed;
      violation.call_number = slot_.looks;
      state_.hooks.sink->on_violation(violation);
    }
    exempt_ += monotonic_now() - start;
  }

  void fall_back(const LiveCall& live) {
    const std::int64_t start = monotonic_now();
    Scratch& scratch = shard_.scratch;
    const Problem& p = live.problem;
    for (std::int64_t b = 0; b < p.batch; ++b)
      for (std::int64_t i = 0; i < p.len_q(b); ++i) {
        live.allowed(b, i, scratch.allowed);
        for (std::int64_t h = 0; h < p.num_heads; ++h) {
          live.reference({b, h, i}, scratch.allowed, scratch.row);
          call_.output.store_row(b, h, i, 0, p.head_dim_v,
                                 scratch.row.output.data());
        }
      }
    seen_.fell_back = true;
    shard_.tally.fallbacks.add(1);
    exempt_ += monotonic_now() - start;
  }

  GuardState& state_;
  Shard& shard_;
  const Layer& layer_;
  const AttentionCall& call_;
  const ObserveContext& context_;
  LayerSlot& slot_;
  Numerics numerics_;
  Observed seen_;
  std::int64_t spent_ = 0;   // Already taken from the budget or the savings.
  std::int64_t exempt_ = 0;  // Not the guard's: the sink, the fallback.
};

}  // namespace

Observed GuardState::observe(Shard& shard, const Layer& layer,
                             const AttentionCall& call,
                             const ObserveContext& context) {
  return Look(*this, shard, layer, call, context).run();
}

}  // namespace runtime_internal
}  // namespace attnguard
