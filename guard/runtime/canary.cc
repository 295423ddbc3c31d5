#include "guard/runtime/canary.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "guard/base/rng.h"
#include "guard/base/text.h"
#include "guard/check/check.h"
#include "guard/probe/execute.h"
#include "guard/probe/plan.h"

namespace attnguard::runtime_internal {
namespace {

// What is looked for: who sees whom, and how much in all.
constexpr std::string_view kCanaryChecks[] = {"visibility", "row-sum"};

// A run that nobody goes on with, as its layers are not called any more.
constexpr std::int64_t kAbandoned = 60'000'000'000;

// Scores times channels of one probe call.
constexpr double kMostWork = 3e7;

double work_of(const Problem& problem) {
  double work = 0;
  for (std::int64_t b = 0; b < problem.batch; ++b)
    work += static_cast<double>(problem.len_q(b)) *
            static_cast<double>(problem.len_kv(b));
  return work * static_cast<double>(problem.num_heads *
                                    (problem.head_dim_qk + problem.head_dim_v));
}

double elements_of(const Problem& problem) {
  double sum = 0;
  for (TensorRole role : {TensorRole::kQuery, TensorRole::kKey,
                          TensorRole::kValue, TensorRole::kOutput})
    sum += static_cast<double>(problem.extent(role));
  return sum;
}

// Unlike dims or options take other paths through a kernel.
std::uint64_t kind_of(const Layer& layer, const Problem& p) {
  std::uint64_t key = derive_seed(0x63616e617279, layer.group_index);
  const auto add = [&](std::uint64_t part) { key = derive_seed(key, part); };
  add(static_cast<std::uint64_t>(p.dtype) * 8 +
      static_cast<std::uint64_t>(p.output_dtype()));
  add(static_cast<std::uint64_t>(p.num_heads));
  add(static_cast<std::uint64_t>(p.num_kv_heads));
  add(static_cast<std::uint64_t>(p.head_dim_qk));
  add(static_cast<std::uint64_t>(p.head_dim_v));
  add(static_cast<std::uint64_t>(p.block_size));
  add((p.packed ? 1u : 0u) + (p.softcap ? 2u : 0u) +
      (p.alibi_max_bias ? 4u : 0u) + (p.sinks.empty() ? 0u : 8u) +
      (p.value_in_key ? 16u : 0u) + 32u * static_cast<unsigned>(p.mask_form));
  for (const MaskTerm& term : p.mask.terms())
    add(reinterpret_cast<std::uintptr_t>(term.kind));
  return key;
}

// So do unlike lengths, which count by powers of two.
std::uint64_t class_of(const Layer& layer, const Problem& p) {
  std::uint64_t key = kind_of(layer, p);
  for (std::int64_t length : {p.max_len_q(), p.max_len_kv(), p.batch})
    key = derive_seed(key, static_cast<std::uint64_t>(std::bit_width(
                               static_cast<std::uint64_t>(length))));
  return key == 0 ? 1 : key;
}

bool same(const Numerics& a, const Numerics& b) {
  return a.score == b.score && a.probability == b.probability &&
         a.accumulator == b.accumulator && a.max_input == b.max_input &&
         a.key_error == b.key_error && a.value_error == b.value_error;
}

void cap(std::vector<std::int64_t>& lengths, std::int64_t batch,
         std::int64_t most) {
  if (lengths.size() > 1) lengths.resize(static_cast<std::size_t>(batch));
  for (std::int64_t& length : lengths) length = std::min(length, most);
}

Problem shrink(const Problem& from, std::int64_t batch, std::int64_t kv_heads,
               std::int64_t longest) {
  Problem p = from;
  p.batch = std::min(from.batch, batch);
  p.num_kv_heads = std::min(from.num_kv_heads, kv_heads);
  p.num_heads = p.num_kv_heads * from.group_size();
  if (p.sinks.size() > 1) p.sinks.resize(static_cast<std::size_t>(p.num_heads));
  // Queries and keys lose the same number of tokens.
  cap(p.seq_len_kv, p.batch, longest);
  cap(p.seq_len_q, p.batch, longest);
  p.shared_prefix = std::min(p.shared_prefix, longest / 2);
  if (p.block_size > 0) p.shared_prefix -= p.shared_prefix % p.block_size;
  for (std::optional<Shape4>* strides :
       {&p.query_strides, &p.key_strides, &p.value_strides, &p.output_strides})
    strides->reset();
  p.mask = from.mask.shrunk_to(p);
  return p;
}

}  // namespace

Problem canary_problem(const Problem& live) {
  struct Size {
    std::int64_t batch, kv_heads, longest;
  };
  constexpr Size kSizes[] = {{1 << 20, 1 << 20, 1 << 30},
                             {2, 2, 1 << 30},
                             {2, 1, 1 << 30},
                             {2, 1, 1025},
                             {2, 2, 300},
                             {2, 1, 300},
                             {1, 1, 130}};
  Problem best = live;
  for (const Size& size : kSizes) {
    Problem smaller = shrink(live, size.batch, size.kv_heads, size.longest);
    if (!smaller.validate().ok()) continue;
    best = std::move(smaller);
    if (work_of(best) <= kMostWork) break;
  }
  return best;
}

// One run, from its first step to its last.
struct Canary::Run {
  struct Active {
    const CheckInfo* info;
    std::unique_ptr<Check> check;
    FindingSink sink;
  };

  Run(const LiveCall& live, Known& its_class, std::uint64_t seed)
      : known(&its_class),
        layer(live.layer.index),
        kind(kind_of(live.layer, live.problem)),
        problem(canary_problem(live.problem)),
        plan(problem.head_dim_v) {
    engine.name = "live";
    engine.run = [this](const AttentionCall& call) { return (*kernel)(call); };
    engine.capabilities.deterministic = live.layer.options.deterministic;
    engine.capabilities.numerics = live.layer.options.numerics;
    numerics = numerics_of(engine, problem);
    for (std::string_view id : kCanaryChecks) {
      const CheckInfo* info = find_check(id);
      if (info == nullptr) continue;
      const CheckContext context{problem,
                                 numerics,
                                 engine.capabilities.deterministic,
                                 Coverage::kSampled,
                                 seed,
                                 Tolerance{},
                                 &engine};
      if (!info->not_applicable(context).empty()) continue;
      checks.push_back({info, info->make(context), {}});
    }
    executor = std::make_unique<Executor>(engine, problem);
  }

  // Any layer of the group goes on with the run: were it one alone, the run
  // would wait for ten looks at that one. Its kernel must be alike, as what
  // was planned is judged by what is known of the first.
  bool is_of(const LiveCall& live) const {
    if (layer == live.layer.index) return true;
    const LayerOptions& options = live.layer.options;
    return kind == kind_of(live.layer, live.problem) &&
           engine.capabilities.deterministic == options.deterministic &&
           same(numerics, options.numerics ? options.numerics(problem)
                                           : default_numerics(problem));
  }

  double step_work() const { return work_of(problem) + 100 * elements(); }
  double elements() const { return elements_of(problem); }

  Known* known;
  std::uint32_t layer;
  std::uint64_t kind;  // Tells layer groups apart, too.
  std::int64_t last_step = 0;
  Problem problem;
  Engine engine;
  Numerics numerics;
  const AttentionCallback* kernel = nullptr;  // Of the present step.
  std::vector<Active> checks;
  Plan plan;
  std::unique_ptr<Executor> executor;
  int next_call = -1;  // -1: nothing is allocated yet.
};

Canary::Canary() : cost_(0.3) {}
Canary::~Canary() = default;

CanaryState Canary::state(std::int64_t now) const {
  CanaryState state;
  state.finished = finished_.load();
  state.shape_classes = classes_.load();
  if (const std::int64_t last = last_finished_.load(); last > 0)
    state.seconds_since_last = static_cast<double>(now - last) * 1e-9;
  return state;
}

void Canary::after_fork() {
  // A thread that is gone may have been in the middle of a step.
  if (busy_.test()) static_cast<void>(run_.release());
  run_.reset();
  num_known_ = 0;
  finished_ = 0;
  classes_ = 0;
  last_finished_ = 0;
  busy_.clear();
}

CanaryStep Canary::step(const LiveCall& live, std::int64_t now, double room,
                        std::uint64_t seed, Judgement& judgement) {
  if (busy_.test_and_set(std::memory_order_acquire)) {
    judgement.skipped = SkipReason::kBusy;
    return CanaryStep::kNothing;
  }
  struct Release {
    std::atomic_flag& flag;
    ~Release() { flag.clear(std::memory_order_release); }
  } release{busy_};
  if (run_ && !run_->is_of(live)) {
    if (now - run_->last_step < kAbandoned) {
      judgement.skipped = SkipReason::kBusy;
      return CanaryStep::kNothing;
    }
    run_.reset();
  }
  if (!run_) {
    Known* due = find_due(live, now);
    if (due == nullptr) {
      judgement.skipped = SkipReason::kNotDue;
      return CanaryStep::kNothing;
    }
    run_ = std::make_unique<Run>(live, *due, derive_seed(seed, finished_));
    run_->last_step = now;
  }
  run_->kernel = live.context.kernel;
  const CanaryStep step = advance(now, room, judgement);
  if (run_) run_->kernel = nullptr;
  return step;
}

Canary::Known* Canary::find_due(const LiveCall& live, std::int64_t now) {
  const RuntimeSettings& settings = live.layer.settings;
  const std::uint64_t key = class_of(live.layer, live.problem);
  const auto end = known_.begin() + static_cast<std::ptrdiff_t>(num_known_);
  const auto found = std::find_if(known_.begin(), end, [&](const Known& known) {
    return known.key == key;
  });
  if (found != end) {
    const bool again = settings.canary_interval > 0 && !found->failed &&
                       static_cast<double>(now - found->finished) >
                           settings.canary_interval * 1e9;
    return found->finished == 0 || again ? &*found : nullptr;
  }
  const bool wanted =
      num_known_ == 0 ? settings.canary_at_start : settings.canary_on_new_shape;
  if (num_known_ == kMostClasses) return nullptr;
  Known& fresh = known_[num_known_++];
  fresh = {.key = key, .finished = wanted ? 0 : now};
  classes_.store(num_known_);
  return wanted ? &fresh : nullptr;
}

CanaryStep Canary::fail(SkipReason reason, std::int64_t now,
                        Judgement& judgement) {
  run_->known->finished = now;
  run_->known->failed = true;
  run_.reset();
  judgement.skipped = reason;
  return CanaryStep::kNothing;
}

CanaryStep Canary::advance(std::int64_t now, double room,
                           Judgement& judgement) {
  Run& run = *run_;
  if (cost_.predict(run.step_work()) > room) {
    cost_.forget();
    judgement.skipped = SkipReason::kBudget;
    return CanaryStep::kNothing;
  }
  run.last_step = now;
  if (run.next_call < 0) {
    if (run.checks.empty())
      return fail(SkipReason::kNothingToJudge, now, judgement);
    if (!run.executor->allocate().ok())
      return fail(SkipReason::kGuardError, now, judgement);
    for (Run::Active& active : run.checks) active.check->plan(run.plan);
    run.next_call = 0;
    return CanaryStep::kPart;
  }
  const auto num_calls = static_cast<int>(run.plan.calls().size());
  if (run.next_call < num_calls) {
    Observation seen;
    if (!run.executor->run(run.plan, run.next_call, seen).ok())
      return fail(SkipReason::kEngineError, now, judgement);
    for (Run::Active& active : run.checks)
      active.check->judge(seen, active.sink);
    ++run.next_call;
    cost_.learn(run.step_work(), monotonic_now() - now);
    if (run.next_call < num_calls) return CanaryStep::kPart;
  }
  return finish(now, judgement);
}

CanaryStep Canary::finish(std::int64_t now, Judgement& judgement) {
  Run& run = *run_;
  bool judged = false;
  for (Run::Active& active : run.checks) {
    CheckResult result;
    active.check->finish(active.sink, result);
    judged |= result.verdict == Verdict::kPass ||
              result.verdict == Verdict::kViolation;
    for (Finding& finding : active.sink.take())
      judgement.sink.add(std::move(finding));
  }
  if (judged)
    judgement.rows =
        run.problem.batch * run.problem.num_heads * run.problem.max_len_q();
  if (judgement.sink.count() > 0) {
    // Each finding is of another probe call: the problem and the seed say how
    // to make them again.
    kept_problem_ = run.problem;
    AttentionCall call;
    call.problem = &kept_problem_;
    judgement.scratch_call = call;
  }
  run.known->finished = now;
  last_finished_ = now;
  ++finished_;
  run_.reset();
  return CanaryStep::kDone;
}

namespace {

double no_work(const LiveCall&) { return 1; }

}  // namespace

const LiveCheckInfo kLiveCanary = {.check = LiveCheck::kCanary,
                                   .passive = false,
                                   .first_guess = 1,
                                   .units = no_work,
                                   .run = nullptr};

}  // namespace attnguard::runtime_internal
