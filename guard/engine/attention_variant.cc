#include "guard/engine/attention_variant.h"

#include <utility>

namespace attnguard {
namespace {

// What one (batch, head) works on.
struct HeadWork {
  const AttentionVariant& variant;
  const AttentionCall& call;
  std::int64_t batch;
  std::int64_t head;
  double scale;
  Fp64Rows key;
  Fp64Rows value;

  const Problem& problem() const { return *call.problem; }
  VariantRow row(std::int64_t q_index) const {
    return {problem(), head, problem().row(batch, q_index)};
  }
};

// Buffers of one thread.
struct RowBuffers {
  std::vector<double> query;
  std::vector<double> scores;
  std::vector<double> output;
  KeyRanges keys;

  explicit RowBuffers(const Problem& problem)
      : query(static_cast<std::size_t>(problem.head_dim_qk)),
        scores(static_cast<std::size_t>(problem.max_len_kv())),
        output(static_cast<std::size_t>(problem.head_dim_v)) {}
};

void find_keys(const HeadWork& work, const VariantRow& row, KeyRanges& keys) {
  work.problem().mask.allowed(row.place, keys);
  if (work.variant.allowed) work.variant.allowed(row, keys);
}

void find_scores(const HeadWork& work, const VariantRow& row,
                 const KeyRanges& keys, std::vector<double>& query,
                 double* scores) {
  const Problem& problem = work.problem();
  work.call.query.load_row(work.batch, work.head, row.place.q_index, 0,
                           problem.head_dim_qk, query.data());
  score_row(query.data(), work.key, problem.head_dim_qk, work.scale, keys,
            scores);
  if (work.variant.scores)
    work.variant.scores(
        row, keys, {scores, static_cast<std::size_t>(row.place.seq_len_kv)});
}

void finish_row(const HeadWork& work, const VariantRow& row,
                const KeyRanges& keys, double* weights,
                std::vector<double>& output) {
  const AttentionVariant& variant = work.variant;
  const std::span<double> all_weights(
      weights, static_cast<std::size_t>(row.place.seq_len_kv));
  const std::int64_t channels = work.problem().head_dim_v;
  if (variant.weights) variant.weights(row, keys, all_weights);
  if (variant.mix)
    variant.mix(row, keys, all_weights, work.value, output);
  else
    mix_values(weights, work.value, channels, keys, output.data());
  if (variant.output) variant.output(row, output);
  if (variant.keeps && !variant.keeps(row)) return;
  work.call.output.store_row(work.batch, work.head, row.place.q_index, 0,
                             channels, output.data());
}

void run_rows(const HeadWork& work) {
  const std::int64_t seq_len_q = work.problem().len_q(work.batch);
  // Starting threads costs more than a small head.
  const std::int64_t products =
      seq_len_q * work.problem().len_kv(work.batch) *
      (work.problem().head_dim_qk + work.problem().head_dim_v);
#pragma omp parallel if (products > (1 << 22))
  {
    RowBuffers own(work.problem());
#pragma omp for schedule(dynamic, 16)
    for (std::int64_t i = 0; i < seq_len_q; ++i) {
      const VariantRow row = work.row(i);
      find_keys(work, row, own.keys);
      find_scores(work, row, own.keys, own.query, own.scores.data());
      softmax_row(own.keys, own.scores.data());
      finish_row(work, row, own.keys, own.scores.data(), own.output);
    }
  }
}

void run_matrix(const HeadWork& work) {
  VariantScores matrix;
  matrix.seq_len_q = work.problem().len_q(work.batch);
  matrix.seq_len_kv = work.problem().len_kv(work.batch);
  matrix.values.resize(
      static_cast<std::size_t>(matrix.seq_len_q * matrix.seq_len_kv));
  matrix.keys.resize(static_cast<std::size_t>(matrix.seq_len_q));
  RowBuffers own(work.problem());
  for (std::int64_t i = 0; i < matrix.seq_len_q; ++i) {
    KeyRanges& keys = matrix.keys[static_cast<std::size_t>(i)];
    find_keys(work, work.row(i), keys);
    find_scores(work, work.row(i), keys, own.query, matrix.row(i));
  }
  work.variant.softmax(work.problem(), matrix);
  for (std::int64_t i = 0; i < matrix.seq_len_q; ++i)
    finish_row(work, work.row(i), matrix.keys[static_cast<std::size_t>(i)],
               matrix.row(i), own.output);
}

}  // namespace

Status run_variant(const AttentionVariant& variant, const AttentionCall& call) {
  const Problem& problem = *call.problem;
  std::vector<double> key_buffer, value_buffer;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    KeyRanges all;
    all.append(0, problem.len_kv(b));
    Fp64Rows key, value;
    std::int64_t decoded_head = -1;
    for (std::int64_t h = 0; h < problem.num_heads; ++h) {
      const std::int64_t kv_head =
          variant.kv_head ? variant.kv_head(problem, h) : problem.kv_head_of(h);
      if (kv_head != decoded_head) {
        key = fp64_rows(call.key, b, kv_head, all, key_buffer);
        value = fp64_rows(call.value, b, kv_head, all, value_buffer);
        decoded_head = kv_head;
      }
      const double scale =
          variant.scale ? variant.scale(problem) : problem.scale();
      const HeadWork work{variant, call, b, h, scale, key, value};
      variant.softmax ? run_matrix(work) : run_rows(work);
    }
  }
  return ok_status();
}

Engine variant_engine(std::string name, std::string description,
                      AttentionVariant variant) {
  Engine engine;
  engine.name = std::move(name);
  engine.description = std::move(description);
  engine.capabilities.numerics = fp64_numerics;
  engine.run = [variant = std::move(variant)](const AttentionCall& call) {
    return run_variant(variant, call);
  };
  return engine;
}

Numerics fp64_numerics(const Problem&) {
  return {Dtype::kFp64, Dtype::kFp64, Dtype::kFp64, 0, 0};
}

}  // namespace attnguard
