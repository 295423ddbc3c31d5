#include "guard/runtime/rerun.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "guard/check/rows.h"
#include "guard/probe/execute.h"
#include "guard/probe/plan.h"

namespace attnguard {
namespace {

// The call's inputs, as a pattern of the part's problem.
class CallScores final : public ScorePattern {
 public:
  CallScores(const JudgedCall& call, const CutCall& part)
      : call_(call), part_(part) {}

  std::string name() const override { return "kept call"; }
  bool whole_query() const override { return true; }

  void query_row(std::int64_t b, std::int64_t head, std::int64_t query,
                 double* to) const override {
    const std::int64_t channels = part_.problem.head_dim_qk;
    std::fill_n(to, channels, 0.0);
    const std::int64_t from_b = part_.batch.first + b;
    const std::int64_t from_head = part_.heads.first + head;
    const std::int64_t from_query = part_.queries.first + query;
    if (call_.scope.holds_row(from_b, from_head, from_query) &&
        from_query < call_.problem->len_q(from_b))
      call_.query.load_row(from_b, from_head, from_query, 0, channels, to);
  }

  void key_row(std::int64_t b, std::int64_t kv_head, std::int64_t key,
               double* to) const override {
    const std::int64_t channels = part_.problem.score_channels();
    load(call_.key, b, kv_head, key, part_.problem.head_dim_qk - channels,
         channels, to);
  }

  void value_row(std::int64_t b, std::int64_t kv_head, std::int64_t key,
                 double* to) const {
    load(call_.value, b, kv_head, key, 0, part_.problem.head_dim_v, to);
  }

 private:
  void load(const ConstTensorView& view, std::int64_t b, std::int64_t kv_head,
            std::int64_t key, std::int64_t first, std::int64_t channels,
            double* to) const {
    std::fill_n(to, channels, 0.0);
    const std::int64_t from_b = part_.batch.first + b;
    const std::int64_t from_head = part_.kv_heads.first + kv_head;
    const std::int64_t from_key = part_.keys.first + key;
    if (call_.scope.batch.contains(from_b) &&
        call_.scope.kv_heads.contains(from_head) &&
        from_key < call_.problem->len_kv(from_b))
      view.load_row(from_b, from_head, from_key, first, channels, to);
  }

  const JudgedCall& call_;
  const CutCall& part_;
};

class CallValues final : public ValuePattern {
 public:
  CallValues(std::shared_ptr<const CallScores> call, std::int64_t columns)
      : call_(std::move(call)), columns_(columns) {}
  std::string name() const override { return "kept values"; }
  std::int64_t columns() const override { return columns_; }
  void value_row(std::int64_t b, std::int64_t kv_head, std::int64_t key,
                 double* to) const override {
    call_->value_row(b, kv_head, key, to);
  }

 private:
  std::shared_ptr<const CallScores> call_;
  std::int64_t columns_;
};

// What of the part the call has: [first, end) of `kept` in the part's indices.
IndexSpan within(const IndexSpan& kept, const IndexSpan& part) {
  const std::int64_t first = std::max(kept.first, part.first);
  const std::int64_t end = std::min(kept.end(), part.end());
  return {first - part.first, std::max<std::int64_t>(end - first, 0)};
}

CaptureScope scope_of(const JudgedCall& call, const CutCall& part) {
  return {.batch = within(call.scope.batch, part.batch),
          .heads = within(call.scope.heads, part.heads),
          .kv_heads = within(call.scope.kv_heads, part.kv_heads),
          .queries = within(call.scope.queries, part.queries)};
}

std::string fault_text(const MemoryFault& fault) {
  std::string_view where = " before its start";
  if (fault.place == MemoryFault::Place::kAfter) where = " behind its end";
  if (fault.place == MemoryFault::Place::kGap) where = " between its rows";
  if (fault.place == MemoryFault::Place::kInput) where = ", which is an input";
  return "memory of '" + std::string(fault.tensor) + "' at element " +
         std::to_string(fault.element) + std::string(where) +
         (fault.access == StrayAccess::Kind::kRead ? " was read"
                                                   : " was written");
}

// Lengths of a part: those of the kept entries, cut to what is left of them.
std::vector<std::int64_t> lengths_of(
    const CutCall& part, std::int64_t (Problem::*length)(std::int64_t) const,
    const Problem& whole, std::int64_t first, std::int64_t most) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t b = part.batch.first; b < part.batch.end(); ++b)
    lengths.push_back(
        std::clamp<std::int64_t>((whole.*length)(b)-first, 0, most));
  return lengths;
}

// Makes the part's problem fit its spans. False: there is no such problem.
bool fit_problem(const Problem& whole, CutCall& part) {
  if (part.batch.count < 1 || part.heads.count < 1 || part.kv_heads.count < 1 ||
      part.queries.count < 1 || part.keys.count < 1)
    return false;
  Problem problem = whole;
  problem.batch = part.batch.count;
  problem.num_heads = part.heads.count;
  problem.num_kv_heads = part.kv_heads.count;
  problem.seq_len_q = lengths_of(part, &Problem::len_q, whole,
                                 part.queries.first, part.queries.count);
  problem.seq_len_kv = lengths_of(part, &Problem::len_kv, whole,
                                  part.keys.first, part.keys.count);
  for (auto* lengths : {&problem.seq_len_q, &problem.seq_len_kv})
    if (std::adjacent_find(lengths->begin(), lengths->end(),
                           std::not_equal_to<>()) == lengths->end())
      lengths->resize(1);
  if (problem.sinks.size() > 1)
    problem.sinks.assign(whole.sinks.begin() + part.heads.first,
                         whole.sinks.begin() + part.heads.end());
  // The scale is that of the call, whatever it was derived from.
  problem.softmax_scale = whole.scale();
  problem.query_strides.reset();
  problem.key_strides.reset();
  problem.value_strides.reset();
  problem.output_strides.reset();
  problem.shared_prefix = 0;
  problem.mask = whole.mask.shrunk_to(problem);
  part.problem = std::move(problem);
  return part.problem.validate().ok();
}

double size_of(const CutCall& part) {
  return static_cast<double>(part.batch.count) *
         (static_cast<double>(part.heads.count * part.queries.count) +
          2.0 * static_cast<double>(part.kv_heads.count * part.keys.count));
}

// Smaller parts of a failing one, the boldest first.
std::vector<CutCall> smaller_parts(const Problem& whole, const Rerun& failing) {
  const CutCall& part = failing.part;
  std::vector<CutCall> parts;
  const auto add = [&](auto change) {
    CutCall smaller = part;
    change(smaller);
    if (size_of(smaller) < size_of(part) && fit_problem(whole, smaller))
      parts.push_back(std::move(smaller));
  };
  const Finding* finding = failing.judged.first();
  if (finding == nullptr) return parts;
  const std::int64_t group = part.heads.count / part.kv_heads.count;
  add([&](CutCall& p) { p.batch = {p.batch.first + finding->batch, 1}; });
  add([&](CutCall& p) {
    p.kv_heads = {p.kv_heads.first + finding->head / group, 1};
    p.heads = {p.heads.first + finding->head / group * group, group};
  });
  add([&](CutCall& p) {
    if (p.kv_heads.count > 1) return;
    p.heads = {p.heads.first + finding->head, 1};
  });
  // A half, then a quarter ... down to one, from either end. Together first:
  // masks compare positions of queries with those of keys.
  const std::int64_t queries = part.queries.count, keys = part.keys.count;
  for (std::int64_t parts_of = 2; parts_of <= std::max(queries, keys) * 2;
       parts_of *= 2) {
    const std::int64_t drop_q = (queries + parts_of - 1) / parts_of;
    const std::int64_t drop_k = (keys + parts_of - 1) / parts_of;
    const auto cut = [&](bool q_front, bool q_back, bool k_front, bool k_back) {
      add([&](CutCall& p) {
        p.queries.first += q_front ? drop_q : 0;
        p.queries.count -= q_front || q_back ? drop_q : 0;
        p.keys.first += k_front ? drop_k : 0;
        p.keys.count -= k_front || k_back ? drop_k : 0;
      });
    };
    cut(false, true, false, true);
    cut(true, false, true, false);
    cut(false, true, false, false);
    cut(true, false, false, false);
    cut(false, false, false, true);
    cut(false, false, true, false);
  }
  return parts;
}

// Whether a term has a list, which may be one of entries.
bool says_things_of_entries(const Mask& mask) {
  for (const MaskTerm& term : mask.terms())
    for (const MaskParameter& parameter : term.kind->parameters)
      if (parameter.list) return true;
  return false;
}

bool goes_wrong(const Result<Rerun>& run) {
  return run.ok() && run.value().judged.verdict == Verdict::kViolation;
}

}  // namespace

CutCall runnable_part(const JudgedCall& call) {
  const CaptureScope whole = whole_call(*call.problem);
  const CutCall all = {.problem = *call.problem,
                       .batch = whole.batch,
                       .heads = whole.heads,
                       .kv_heads = whole.kv_heads,
                       .queries = whole.queries,
                       .keys = {0, call.problem->max_len_kv()}};
  CutCall part = all;
  if (!says_things_of_entries(call.problem->mask))
    part.batch = call.scope.batch;
  // ALiBi's slopes go by the number of the head.
  if (!call.problem->alibi_max_bias) {
    part.heads = call.scope.heads;
    part.kv_heads = call.scope.kv_heads;
  }
  const bool cut = part.batch != all.batch || part.heads != all.heads;
  return cut && fit_problem(*call.problem, part) ? part : all;
}

Result<Rerun> rerun(const Engine& engine, const JudgedCall& call,
                    const CutCall& part, Deadline deadline) {
  if (const std::string reason = unsupported_reason(engine, part.problem);
      !reason.empty())
    return unsupported("the engine cannot run it: " + reason);
  Rerun result{.part = part, .judged = {}, .memory_faults = {}};
  Executor executor(engine, result.part.problem);
  if (Status status = executor.allocate(); !status.ok()) return status;
  const auto scores = std::make_shared<const CallScores>(call, result.part);
  Plan plan(part.problem.head_dim_v);
  plan.request(scores, std::make_shared<const CallValues>(
                           scores, part.problem.head_dim_v));
  Observation seen;
  if (Status status = executor.run(plan, 0, seen); !status.ok()) return status;
  for (const MemoryFault& fault : seen.memory_faults)
    result.memory_faults.push_back(fault_text(fault));
  const JudgedCall own = {.problem = &result.part.problem,
                          .scope = scope_of(call, part),
                          .query = seen.query,
                          .key = seen.key,
                          .value = seen.value,
                          .output = seen.output,
                          .numerics = numerics_of(engine, part.problem),
                          .allowed = {}};
  result.judged = judge_call(own, {}, deadline);
  return result;
}

Shrunk shrink(const Engine& engine, const JudgedCall& call, Rerun failing,
              Deadline deadline) {
  Shrunk shrunk{.smallest = std::move(failing)};
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (const CutCall& part : smaller_parts(*call.problem, shrunk.smallest)) {
      if (std::chrono::steady_clock::now() > deadline) return shrunk;
      ++shrunk.tried;
      Result<Rerun> run = rerun(engine, call, part, deadline);
      if (!goes_wrong(run)) continue;
      shrunk.smallest = std::move(run.value());
      smaller = true;
      break;
    }
  }
  shrunk.finished = true;
  return shrunk;
}

}  // namespace attnguard
