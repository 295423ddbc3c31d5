#include "adapters/libtorch/live_hook.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "adapters/libtorch/live_call.h"
#include "adapters/libtorch/module.h"
#include "adapters/libtorch/recorder.h"

namespace attnguard::libtorch {
namespace {

// As Sdpa::numerics: a plain BLAS rounds equal terms alike, one by one.
Numerics numerics(const Problem& problem) {
  Numerics result = default_numerics(problem);
  if (problem.dtype == Dtype::kBf16 || problem.dtype == Dtype::kFp16) {
    result.score = result.probability = result.accumulator = problem.dtype;
    result.value_error = 8 * unit_roundoff(problem.dtype);
  } else {
    result.value_error = static_cast<double>(problem.max_len_kv()) / 2 *
                         unit_roundoff(result.accumulator);
  }
  return result;
}

// The layer of the call that the thread is in.
thread_local std::uint64_t calls_of_thread = 0;
thread_local std::size_t present_layer = 0;

}  // namespace

class LiveHook::State {
 public:
  State(Guard& guard, LiveHookOptions options)
      : guard_(guard), options_(std::move(options)) {
    rule_ = {options_.mask, options_.softmax_scale};
    const int count = std::max(options_.layers, 1);
    for (int i = 0; i < count; ++i) {
      names_.push_back(options_.layers > 0 ? "sdpa." + std::to_string(i)
                                           : "sdpa");
      LayerOptions layer;
      layer.numerics = numerics;
      layers_.push_back(guard_.layer(names_.back(), layer));
      own_checks_.push_back(
          guard_.layer_settings(layers_.back()).is_on(LiveCheck::kEngine));
    }
  }

  Status start() {
    const Result<const Recorder*> loaded = load_recorder(options_.module);
    if (!loaded.ok()) return loaded.status();
    const Listener listener = {this, wants, seen};
    if (!loaded.value()->start(&listener, options_.probability))
      return unsupported(
          "libtorch: another live hook listens in this process; stop it first");
    recorder_ = loaded.value();
    return ok_status();
  }

  ~State() {
    if (recorder_ != nullptr) recorder_->stop();
  }

  HookCounters counters() const {
    HookCounters result;
    result.attention = attention_.value;
    result.sampled = sampled_.value;
    result.observed = observed_.value;
    result.declined = declined_.value;
    result.mask = mask_.read();
    result.weights = weights_.read();
    const std::lock_guard<std::mutex> lock(reason_mutex_);
    result.last_reason = reason_;
    return result;
  }

 private:
  struct Count {
    std::atomic<std::uint64_t> value{0};
    void add(std::uint64_t amount = 1) {
      value.fetch_add(amount, std::memory_order_relaxed);
    }
  };

  struct CheckCount {
    Count runs, judged, violations;
    HookCounters::Check read() const {
      return {runs.value, judged.value, violations.value};
    }
  };

  static bool wants(void* user) {
    auto& self = *static_cast<State*>(user);
    self.attention_.add();
    present_layer = calls_of_thread++ % self.layers_.size();
    if (!self.guard_.sampled(self.layers_[present_layer])) return false;
    self.sampled_.add();
    return true;
  }

  static void seen(void* user, const SeenCall* call) {
    static_cast<State*>(user)->judge(*call, present_layer);
  }

  void judge(const SeenCall& seen, std::size_t layer) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start = Clock::now();
    const auto charge = [&] {
      guard_.charge(std::chrono::nanoseconds(Clock::now() - start).count());
    };
    thread_local LiveCall call;  // Keeps its memory.
    if (const std::string_view why = call.build(seen, rule_); !why.empty()) {
      decline(why);
      charge();  // A mask may have been read to its end.
      return;
    }
    std::uint64_t elements = 0, rows = 0;
    std::optional<Finding> wrong_mask, wrong_weights;
    if (own_checks_[layer]) {
      wrong_mask = call.wrong_mask(elements);
      wrong_weights = call.wrong_weights(rows);
    }
    // observe() counts its own time, and findings are not budgeted.
    charge();
    count(mask_, "mask", layer, call, wrong_mask, elements);
    count(weights_, "weights", layer, call, wrong_weights, rows);
    observed_.add();
    guard_.observe(layers_[layer], call.call(), call.context());
  }

  void decline(std::string_view why) {
    declined_.add();
    const std::lock_guard<std::mutex> lock(reason_mutex_);
    reason_ = why;
  }

  void count(CheckCount& counters, const char* check, std::size_t layer,
             const LiveCall& call, const std::optional<Finding>& wrong,
             std::uint64_t judged) {
    if (judged == 0) return;
    counters.runs.add();
    counters.judged.add(judged);
    if (!wrong) return;
    counters.violations.add();
    const ObserveContext context = call.context();
    EngineReport report;
    report.check = check;
    report.findings = {&*wrong, 1};
    report.call = &call.call();
    report.context = &context;
    guard_.report(layers_[layer], report);
    if (options_.on_finding)
      options_.on_finding(names_[layer], check, wrong->message);
  }

  Guard& guard_;
  LiveHookOptions options_;
  LiveRule rule_;
  std::vector<std::string> names_;
  std::vector<LayerHandle> layers_;
  std::vector<bool> own_checks_;  // By layer: the policy's `engine` is on.
  const Recorder* recorder_ = nullptr;
  Count attention_, sampled_, observed_, declined_;
  CheckCount mask_, weights_;
  mutable std::mutex reason_mutex_;
  std::string reason_;
};

LiveHook::LiveHook(std::unique_ptr<State> state) : state_(std::move(state)) {}
LiveHook::~LiveHook() = default;

Result<std::unique_ptr<LiveHook>> LiveHook::start(Guard& guard,
                                                  LiveHookOptions options) {
  auto state = std::make_unique<State>(guard, std::move(options));
  if (Status status = state->start(); !status.ok()) return status;
  return std::unique_ptr<LiveHook>(new LiveHook(std::move(state)));
}

HookCounters LiveHook::counters() const { return state_->counters(); }

}  // namespace attnguard::libtorch
