#include "adapters/llama_cpp/live/live_hook.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "adapters/llama_cpp/live/live_hook_state.h"

namespace attnguard::llama_cpp {
namespace {

// So that the sequences of two contexts are not one to the guard.
std::uint64_t next_sequence_base() {
  static std::atomic<std::uint64_t> count{0};
  return ++count * kMostSequences;
}

void add(std::atomic<std::uint64_t>& counter, std::uint64_t amount = 1) {
  counter.fetch_add(amount, std::memory_order_relaxed);
}

}  // namespace

LiveHook::State::State(Guard& guard, LiveHookOptions options)
    : guard_(guard),
      options_(std::move(options)),
      sequence_base_(next_sequence_base()) {}

// --- which layer, which cells ----------------------------------------------

LiveHook::State::Layer& LiveHook::State::layer(int number) {
  const auto index = static_cast<std::size_t>(std::max(number, 0));
  if (index >= by_number_.size()) by_number_.resize(index + 1, nullptr);
  if (by_number_[index] != nullptr) return *by_number_[index];
  Layer& made = layers_.emplace_back();
  made.name = "blk." + std::to_string(index) + ".attn";
  LayerOptions options;
  options.numerics = [&made](const Problem& problem) {
    return numerics_of(made.storage, problem);
  };
  made.handle = guard_.layer(made.name, options);
  made.own_checks =
      guard_.layer_settings(made.handle).is_on(LiveCheck::kEngine);
  return *(by_number_[index] = &made);
}

LayerRule LiveHook::State::rule(int number) const {
  LayerRule rule;
  rule.causal = options_.causal;
  if (options_.window) rule.window = options_.window(number);
  rule.softmax_scale = options_.softmax_scale;
  return rule;
}

// Once for each layer of a graph, before its first node is computed.
bool LiveHook::State::decide(int number) {
  if (number != decided_) {
    decided_ = number;
    look_ = guard_.sampled(layer(number).handle);
    if (look_) add(sampled_);
  }
  return look_;
}

void LiveHook::State::begin_graph(const ggml_tensor* write) {
  add(graphs_);
  decided_ = kNoLayer;
  checked_mask_ = nullptr;
  caches_met_ = 0;
  for (Cache& cache : caches_) cache.index = nullptr;
  if (!told_) return;
  const CacheShape shape = cache_shape(write);
  if (!read_write(write, write_) ||
      !batch_.take(write_.index, shape.cells_per_stream, shape.streams))
    return lose_step("the graph writes other tokens than begin_batch said");
  tell_guard();
}

// What the rows of this graph append to their sequences.
void LiveHook::State::tell_guard() {
  const std::span<const Token> rows = batch_.rows();
  for (std::size_t i = 0; i < rows.size();) {
    std::size_t end = i + 1;
    while (end < rows.size() && rows[end].sequences == rows[i].sequences &&
           rows[end].position == rows[end - 1].position + 1)
      ++end;
    for (std::int32_t s = 0; s < kMostSequences; ++s)
      if (rows[i].sequences.test(static_cast<std::size_t>(s)))
        guard_.append(id(s), rows[i].position,
                      static_cast<std::int64_t>(end - i));
    i = end;
  }
}

void LiveHook::State::note_write(const ggml_tensor* write, int number) {
  if (number <= last_layer_) begin_graph(write);
  last_layer_ = number;
  if (!told_ || !in_step_) return;
  const auto index = static_cast<std::size_t>(number);
  if (index >= cache_number_.size()) cache_number_.resize(index + 1, -1);
  for (std::size_t i = 0; i < caches_met_; ++i)
    if (caches_[i].index == index_tensor(write)) {
      cache_number_[index] = static_cast<int>(i);
      return;
    }
  if (caches_met_ == caches_.size()) caches_.emplace_back();
  Cache& cache = caches_[caches_met_];
  cache_number_[index] = static_cast<int>(caches_met_++);
  cache.index = index_tensor(write);
  const CacheShape shape = cache_shape(write);
  cache.ledger.resize(shape.cells_per_stream, shape.streams);
  const std::span<const Token> rows = batch_.rows();
  if (!read_write(write, write_) || write_.index.size() != rows.size())
    return lose_step("a layer writes other rows than begin_batch said");
  for (std::size_t r = 0; r < rows.size(); ++r)
    if (cache.ledger.contains(write_.index[r]))
      cache.ledger.write(write_.index[r], rows[r]);
}

// nullptr: nobody said what lies in the layer's cells.
LiveHook::State::Cache* LiveHook::State::cache_of(int number) {
  const auto index = static_cast<std::size_t>(number);
  if (!told_ || !in_step_ || number < 0 || index >= cache_number_.size() ||
      cache_number_[index] < 0 || batch_.rows().empty())
    return nullptr;
  return &caches_[static_cast<std::size_t>(cache_number_[index])];
}

// --- the callback ----------------------------------------------------------

bool LiveHook::State::ask(const ggml_tensor* node) {
  const NodeKind kind = kind_of(node);
  if (kind == NodeKind::kOther) return false;
  const int number = layer_of(node);
  if (number < 0) return false;
  if (kind == NodeKind::kWriteKey) note_write(node, number);
  if (kind == NodeKind::kAttention) add(attention_);
  return decide(number);
}

// What the hook itself does is charged to the guard's budget.
void LiveHook::State::computed(const ggml_tensor* node) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  not_charged_ = {};
  look_at(node);
  guard_.charge(
      std::chrono::nanoseconds(Clock::now() - start - not_charged_).count());
}

void LiveHook::State::look_at(const ggml_tensor* node) {
  switch (kind_of(node)) {
    case NodeKind::kWriteKey:
    case NodeKind::kWriteValue:
      return check_write(node);
    case NodeKind::kSoftmax:
      return keep_query(node);
    case NodeKind::kAttention:
      return judge(node);
    case NodeKind::kOther:
      return;
  }
}

void LiveHook::State::check_write(const ggml_tensor* node) {
  const Layer& its = layer(layer_of(node));
  if (!its.own_checks || !read_write(node, write_) || !can_compare(write_))
    return;
  CheckOutcome outcome;
  outcome.judged = write_.index.size();
  outcome.row = first_wrong_row(write_);
  if (outcome.row >= 0) {
    outcome.wrong = 1;
    outcome.message =
        std::string(kind_of(node) == NodeKind::kWriteKey ? "key" : "value") +
        " cache, row " +
        std::to_string(write_.index[static_cast<std::size_t>(outcome.row)]) +
        ": not what was written there";
  }
  const std::size_t rows = batch_.rows().size();
  // A transposed value cache has a row for each element, head by head.
  if (rows > 0 && write_.index.size() > rows && outcome.row >= 0)
    outcome.row /= static_cast<std::int64_t>(write_.index.size() / rows);
  // The attention that will read the cache is not computed yet.
  count(EngineCheck::kCacheWrite, outcome, its, false);
}

// Without flash attention the query's memory is free again before the output is
// there.
void LiveHook::State::keep_query(const ggml_tensor* softmax) {
  kept_query_ = {};
  const Place query = query_of_softmax(softmax);
  if (query.data == nullptr || query.dtype() != Dtype::kFp32) return;
  const Shape4& shape = query.shape;
  query_.resize(
      static_cast<std::size_t>(shape[0] * shape[1] * shape[2] * shape[3]));
  kept_query_ = query;
  kept_query_.data = reinterpret_cast<const std::byte*>(query_.data());
  const Shape4 dense = contiguous_strides(shape);
  for (std::size_t i = 0; i < 4; ++i)
    kept_query_.bytes[i] = dense[i] * static_cast<std::int64_t>(sizeof(float));
  float* to = query_.data();
  for (std::int64_t s = 0; s < shape[0]; ++s)
    for (std::int64_t h = 0; h < shape[1]; ++h)
      for (std::int64_t i = 0; i < shape[2]; ++i, to += shape[3])
        decode_row(query.type, query.at(s, h, i), shape[3], to);
}

void LiveHook::State::judge(const ggml_tensor* tensor) {
  AttentionNode node = describe(tensor);
  if (!node.flash) node.query = std::exchange(kept_query_, {});
  if (!node.problem.empty()) return decline(node.problem);
  if (node.query.data == nullptr) return decline("no query was kept");
  Layer& its = layer(node.layer);
  its.storage = {node.flash, node.key.dtype(), node.value.dtype()};
  Cache* cache = cache_of(node.layer);
  // Built first, so that what the hook's checks find is dumped with the call.
  const std::string_view why = build_call(node, cache);
  if (its.own_checks) make_own_checks(node, its, cache, why.empty());
  if (!why.empty()) return decline(why);
  if (cache == nullptr) add(not_told_);
  observe(its);
}

// Empty, or why there is no call that the guard can judge.
std::string_view LiveHook::State::build_call(const AttentionNode& node,
                                             Cache* cache) {
  return cache != nullptr ? builder_.build(node, batch_.rows(), cache->ledger,
                                           rule(node.layer), sequence_base_)
                          : builder_.build_from_mask(node, rule(node.layer));
}

void LiveHook::State::make_own_checks(const AttentionNode& node, Layer& its,
                                      Cache* cache, bool has_call) {
  if (cache != nullptr) {
    if (node.mask.data != nullptr && checked_mask_ != node.mask.data) {
      checked_mask_ = node.mask.data;
      count(EngineCheck::kMask,
            check_mask(node, batch_.rows(), cache->ledger, rule(node.layer)),
            its, has_call);
    }
    count(EngineCheck::kCacheCell, judge_cells(node, its, *cache), its,
          has_call);
  }
  if (!node.flash)
    count(EngineCheck::kWeights, check_weights(node), its, has_call);
}

void LiveHook::State::observe(Layer& its) {
  add(observed_);
  const auto start = std::chrono::steady_clock::now();
  guard_.observe(its.handle, builder_.call(), builder_.context());
  not_charged_ += std::chrono::steady_clock::now() - start;
}

// Every cell that a row of this graph can see.
CheckOutcome LiveHook::State::judge_cells(const AttentionNode& node, Layer& its,
                                          Cache& cache) {
  const std::span<const Token> rows = batch_.rows();
  CheckOutcome outcome;
  SequenceSet done;
  std::vector<Cell> cells;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto sequence = static_cast<std::size_t>(rows[r].sequence);
    if (done.test(sequence)) continue;
    done.set(sequence);
    cache.ledger.cells_of(rows[r].sequence, node.key.shape[2], cells);
    for (const Cell& cell : cells) {
      ++outcome.judged;
      if (!its.prints.changed(node, cache.ledger, cell.index) ||
          outcome.wrong++ > 0)
        continue;
      outcome.row = static_cast<std::int64_t>(r);
      outcome.message =
          "sequence " + std::to_string(rows[r].sequence) + ", position " +
          std::to_string(cell.position) + ": cell " +
          std::to_string(cell.index % cache.ledger.cells_per_stream()) +
          " is not what it was when it was last seen, and nobody wrote it";
    }
  }
  outcome.kind = FindingKind::kOverwrite;
  return outcome;
}

void LiveHook::State::decline(std::string_view reason) {
  add(declined_);
  const std::lock_guard<std::mutex> lock(reason_mutex_);
  reason_ = reason;
}

// From here to cleared(), rows are judged by the engine's own mask: the host is
// told why, as it may not have meant that.
void LiveHook::State::lose_step(std::string_view reason) {
  if (!std::exchange(in_step_, false)) return;
  const std::lock_guard<std::mutex> lock(reason_mutex_);
  reason_ = reason;
}

void LiveHook::State::count(EngineCheck check, const CheckOutcome& outcome,
                            const Layer& its, bool has_call) {
  AtomicCheck& counters = checks_[static_cast<std::size_t>(check)];
  add(counters.runs);
  add(counters.judged, outcome.judged);
  if (outcome.wrong == 0) return;
  add(counters.violations);
  add(counters.findings, outcome.wrong);
  const auto start = std::chrono::steady_clock::now();
  report(check, outcome, its, has_call);
  not_charged_ += std::chrono::steady_clock::now() - start;
}

// The rows of the graph, for a dump: runs of positions, the first of very many.
std::string LiveHook::State::rows_text() const {
  constexpr int kMostRuns = 64;
  const std::span<const Token> rows = batch_.rows();
  std::string text = "graph " + std::to_string(graphs_.load()) +
                     " of the hook, " + std::to_string(rows.size()) +
                     " rows whose sequences the host said\n";
  const auto span = [](const char* what, std::int64_t first,
                       std::int64_t count) {
    std::string words = what + (count > 1 ? std::string("s ") : " ");
    words += std::to_string(first);
    return count > 1 ? words + " to " + std::to_string(first + count - 1)
                     : words;
  };
  int runs = 0;
  for (std::size_t r = 0; r < rows.size();) {
    if (runs++ == kMostRuns) return text + "...\n";
    std::size_t end = r + 1;
    while (end < rows.size() && rows[end].sequence == rows[r].sequence &&
           rows[end].position == rows[end - 1].position + 1)
      ++end;
    const auto count = static_cast<std::int64_t>(end - r);
    text += span("row", static_cast<std::int64_t>(r), count) + ": sequence " +
            std::to_string(rows[r].sequence) + ", " +
            span("position", rows[r].position, count) + "\n";
    r = end;
  }
  return text;
}

// `has_call`: the builder has the call that it is about.
void LiveHook::State::report(EngineCheck check, const CheckOutcome& outcome,
                             const Layer& its, bool has_call) {
  Finding found;
  found.kind = outcome.kind;
  found.message = outcome.message;
  const std::string text = rows_text();
  const ObserveContext context = builder_.context();
  EngineReport report;
  report.check = engine_check_id(check);
  report.findings = {&found, 1};
  report.num_findings = static_cast<std::int64_t>(outcome.wrong);
  report.text = text;
  if (has_call) {
    const CallBuilder::RowOfCall place = builder_.row_of_call(outcome.row);
    found.batch = place.batch;
    found.query = place.query;
    found.head = outcome.head;
    report.call = &builder_.call();
    report.context = &context;
  }
  guard_.report(its.handle, report);
  if (!options_.on_finding) return;
  EngineFinding finding;
  finding.check = check;
  finding.layer = its.name;
  const auto row = static_cast<std::size_t>(outcome.row);
  if (outcome.row >= 0 && row < batch_.rows().size()) {
    finding.sequence = batch_.rows()[row].sequence;
    finding.position = batch_.rows()[row].position;
  }
  finding.message = outcome.message;
  options_.on_finding(finding);
}

HookCounters LiveHook::State::counters() const {
  HookCounters result;
  result.graphs = graphs_;
  result.attention = attention_;
  result.sampled = sampled_;
  result.observed = observed_;
  result.not_told = not_told_;
  result.declined = declined_;
  for (std::size_t i = 0; i < kNumEngineChecks; ++i)
    result.checks[i] = {checks_[i].runs, checks_[i].judged,
                        checks_[i].violations, checks_[i].findings};
  const std::lock_guard<std::mutex> lock(reason_mutex_);
  result.last_reason = reason_;
  return result;
}

// --- the interface ---------------------------------------------------------

LiveHook::LiveHook(Guard& guard, LiveHookOptions options)
    : state_(std::make_unique<State>(guard, std::move(options))) {}

LiveHook::~LiveHook() = default;

bool LiveHook::evaluate(ggml_tensor* node, bool ask, void* hook) {
  State& state = *static_cast<LiveHook*>(hook)->state_;
  if (ask) return state.ask(node);
  state.computed(node);
  return true;  // Go on with the graph.
}

void LiveHook::begin_batch(std::int32_t num_tokens,
                           const std::int32_t* positions,
                           const std::int32_t* num_sequences,
                           const std::int32_t* const* sequences) {
  state_->begin_batch(num_tokens, positions, num_sequences, sequences);
}

void LiveHook::batch_failed() { state_->batch_failed(); }
void LiveHook::cleared() { state_->cleared(); }
void LiveHook::removed(std::int32_t sequence, std::int32_t p0,
                       std::int32_t p1) {
  state_->removed(sequence, p0, p1);
}
void LiveHook::copied(std::int32_t from, std::int32_t to, std::int32_t p0,
                      std::int32_t p1) {
  state_->copied(from, to, p0, p1);
}
void LiveHook::kept(std::int32_t sequence) { state_->kept(sequence); }
void LiveHook::shifted(std::int32_t sequence, std::int32_t p0, std::int32_t p1,
                       std::int32_t by) {
  state_->shifted(sequence, p0, p1, by);
}
HookCounters LiveHook::counters() const { return state_->counters(); }

}  // namespace attnguard::llama_cpp
