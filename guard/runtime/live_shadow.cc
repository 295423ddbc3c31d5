#include "guard/runtime/live_shadow.h"

#include "guard/probe/random.h"

namespace attnguard::runtime_internal {
namespace {

void fresh_row(const LiveCall& live, TensorRole role, std::int64_t b,
               std::int64_t h, std::int64_t position, std::int64_t count,
               double* to) {
  fill_random_row(live.bits, role, b, h, position, 1.0, count, to);
}

}  // namespace

void LiveScores::query_row(std::int64_t batch, std::int64_t head,
                           std::int64_t q_index, double* to) const {
  const std::int64_t channels = live_.problem.head_dim_qk;
  if (fresh_.query(batch, q_index))
    fresh_row(live_, TensorRole::kQuery, batch, head, q_index, channels, to);
  else
    live_.call.query.load_row(batch, head, q_index, 0, channels, to);
}

void LiveScores::key_row(std::int64_t batch, std::int64_t kv_head,
                         std::int64_t kv_index, double* to) const {
  const std::int64_t channels = live_.problem.score_channels();
  if (fresh_.key(batch, kv_index))
    fresh_row(live_, TensorRole::kKey, batch, kv_head, kv_index, channels, to);
  else
    live_.call.key.load_row(batch, kv_head, kv_index,
                            live_.problem.head_dim_qk - channels, channels, to);
}

void LiveValues::value_row(std::int64_t batch, std::int64_t kv_head,
                           std::int64_t kv_index, double* to) const {
  const std::int64_t channels = live_.problem.head_dim_v;
  if (fresh_.key(batch, kv_index))
    fresh_row(live_, TensorRole::kValue, batch, kv_head, kv_index, channels,
              to);
  else
    live_.call.value.load_row(batch, kv_head, kv_index, 0, channels, to);
}

ShadowRun::ShadowRun(const LiveCall& live)
    : plan(live.problem.head_dim_v),
      engine_{.name = "live", .run = *live.context.kernel},
      executor_(engine_, live.problem) {}

bool ShadowRun::run(int index, Observation& seen, Judgement& judgement) {
  if (!allocated_ && !executor_.allocate().ok()) {
    judgement.skipped = SkipReason::kGuardError;
    return false;
  }
  allocated_ = true;
  if (executor_.run(plan, index, seen).ok()) return true;
  judgement.skipped = SkipReason::kEngineError;
  return false;
}

AttentionCall call_of(const Observation& seen) {
  AttentionCall call;
  call.problem = seen.problem;
  call.query = seen.query;
  call.key = seen.key;
  call.value = seen.value;
  call.output = {const_cast<std::byte*>(seen.output.data), seen.output.dtype,
                 seen.output.shape, seen.output.strides, seen.output.tokens};
  return call;
}

double shadow_work(const LiveCall& live) {
  const Problem& p = live.problem;
  double scores = 0, tokens = 0;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    scores += static_cast<double>(p.len_q(b) * p.len_kv(b) * p.num_heads);
    tokens += static_cast<double>(p.len_q(b) * p.num_heads +
                                  p.len_kv(b) * p.num_kv_heads);
  }
  return (scores + 50 * tokens) *
         static_cast<double>(p.head_dim_qk + p.head_dim_v);
}

}  // namespace attnguard::runtime_internal
