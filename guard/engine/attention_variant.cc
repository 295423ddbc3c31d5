#include "guard/engine/attention_variant.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "guard/engine/mask_tensor.h"

namespace attnguard {
namespace {

// Keys of one entry that may be read: its own, or with `place` every slot.
std::int64_t readable_keys(const AttentionVariant& variant,
                           const Problem& problem, std::int64_t batch) {
  return variant.place ? problem.max_len_kv() : problem.len_kv(batch);
}

// Keys or values in fp64, decoded when another slot is asked for.
class SlotReader {
 public:
  SlotReader(const AttentionVariant& variant, const AttentionCall& call,
             TensorRole role)
      : variant_(variant),
        call_(call),
        role_(role),
        view_(role == TensorRole::kKey ? call.key : call.value) {}

  Fp64Rows rows(const KvSlot& slot, std::int64_t count) {
    if (slot == slot_ && count == count_) return rows_;
    slot_ = slot;
    count_ = count;
    KeyRanges all;
    all.append(0, count);
    if (variant_.row_offset)
      gather();
    else
      rows_ = fp64_rows(view_, slot.batch, slot.kv_head, all, buffer_);
    if (variant_.stored && count > 0) edit();
    return rows_;
  }

 private:
  void gather() {
    const std::int64_t channels = view_.shape[3];
    buffer_.resize(static_cast<std::size_t>(count_ * channels));
    for (std::int64_t j = 0; j < count_; ++j)
      decode(
          view_.dtype,
          view_.data + variant_.row_offset(call_, role_, slot_, j) *
                           static_cast<std::int64_t>(dtype_size(view_.dtype)),
          view_.strides[3], channels, buffer_.data() + j * channels);
    rows_ = {buffer_.data(), channels};
  }

  void edit() {
    const std::int64_t channels = view_.shape[3];
    std::vector<double> edited(static_cast<std::size_t>(count_ * channels));
    for (std::int64_t j = 0; j < count_; ++j)
      std::copy_n(rows_.row(j), channels, edited.data() + j * channels);
    variant_.stored(call_, role_, slot_, edited);
    buffer_ = std::move(edited);
    rows_ = {buffer_.data(), channels};
  }

  const AttentionVariant& variant_;
  const AttentionCall& call_;
  TensorRole role_;
  ConstTensorView view_;
  KvSlot slot_;
  std::int64_t count_ = -1;
  Fp64Rows rows_;
  std::vector<double> buffer_;
};

// What one (batch, head) works on.
struct HeadWork {
  const AttentionVariant& variant;
  const AttentionCall& call;
  std::int64_t batch;
  std::int64_t head;
  std::int64_t query_head;
  std::int64_t num_keys;
  double scale;
  Fp64Rows key;
  Fp64Rows value;

  const Problem& problem() const { return *call.problem; }
  VariantRow row(std::int64_t q_index) const {
    return {problem(), head, problem().row(batch, q_index)};
  }
  std::span<double> all_keys(double* row) const {
    return {row, static_cast<std::size_t>(num_keys)};
  }
};

// Makes the work of each (batch, head) of a call.
class HeadWorks {
 public:
  HeadWorks(const AttentionVariant& variant, const AttentionCall& call)
      : variant_(variant),
        call_(call),
        keys_(variant, call, TensorRole::kKey),
        values_(variant, call, TensorRole::kValue) {}

  // Valid until the next one.
  HeadWork make(std::int64_t batch, std::int64_t head) {
    const Problem& problem = *call_.problem;
    const KvSlot own{batch, problem.kv_head_of(head)};
    const KvSlot key =
        variant_.key_slot ? variant_.key_slot(problem, batch, head) : own;
    const KvSlot value =
        variant_.value_slot ? variant_.value_slot(problem, batch, head) : key;
    const std::int64_t count = readable_keys(variant_, problem, batch);
    return {variant_,
            call_,
            batch,
            head,
            variant_.query_head ? variant_.query_head(problem, head) : head,
            count,
            variant_.scale ? variant_.scale(problem) : problem.scale(),
            keys_.rows(key, count),
            values_.rows(value, count)};
  }

 private:
  const AttentionVariant& variant_;
  const AttentionCall& call_;
  SlotReader keys_, values_;
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
  const AttentionVariant& variant = work.variant;
  if (work.call.mask.data != nullptr && !variant.place) {
    allowed_keys(work.call, row.place, keys);
    if (variant.allowed) variant.allowed(row, keys);
    return;
  }
  RowPlace place = row.place;
  if (variant.place) {
    variant.place(row, place);
    place.seq_len_kv = std::min(place.seq_len_kv, work.num_keys);
  }
  work.problem().mask.allowed(place, keys);
  if (variant.allowed) variant.allowed(row, keys);
}

void find_scores(const HeadWork& work, const VariantRow& row,
                 const KeyRanges& keys, std::vector<double>& query,
                 double* scores) {
  const Problem& problem = work.problem();
  work.call.query.load_row(work.batch, work.query_head, row.place.q_index, 0,
                           problem.head_dim_qk, query.data());
  if (work.variant.query) work.variant.query(row, query);
  score_row(query.data(), work.key, problem.head_dim_qk, work.scale, keys,
            scores);
  if (work.variant.bend)
    work.variant.bend(row, keys, work.all_keys(scores));
  else
    bend_scores(problem, row.head, row.place, keys, scores);
  if (work.variant.scores)
    work.variant.scores(row, keys, work.all_keys(scores));
}

double sink_of(const HeadWork& work, const VariantRow& row) {
  return work.variant.sink ? work.variant.sink(row)
                           : work.problem().sink(row.head);
}

// Before scores become weights.
void report_lse(const HeadWork& work, const VariantRow& row,
                const KeyRanges& keys, const double* scores) {
  if (work.call.softmax_lse.data == nullptr) return;
  const double sink = sink_of(work, row);
  double largest = sink;
  for (const KeyRange& range : keys.ranges())
    for (std::int64_t j = range.begin; j < range.end; ++j)
      largest = std::max(largest, scores[j]);
  double lse = largest;
  if (largest != -std::numeric_limits<double>::infinity()) {
    double sum = std::exp(sink - largest);
    for (const KeyRange& range : keys.ranges())
      for (std::int64_t j = range.begin; j < range.end; ++j)
        sum += std::exp(scores[j] - largest);
    lse += std::log(sum);
  }
  if (work.variant.lse) work.variant.lse(row, lse);
  work.call.softmax_lse.store_row(work.batch, work.head, row.place.q_index, 0,
                                  1, &lse);
}

void report_weights(const HeadWork& work, const VariantRow& row,
                    const KeyRanges& keys, const double* weights) {
  const TensorView& to = work.call.weights;
  if (to.data == nullptr) return;
  std::vector<double> dense(static_cast<std::size_t>(to.shape[3]), 0.0);
  for (const KeyRange& range : keys.ranges())
    std::copy(weights + range.begin, weights + range.end,
              dense.begin() + range.begin);
  if (work.variant.reported_weights)
    work.variant.reported_weights(row, keys, dense);
  to.store_row(work.batch, work.head, row.place.q_index, 0, to.shape[3],
               dense.data());
}

void fill_empty_row(const HeadWork& work, std::vector<double>& output) {
  const Problem& problem = work.problem();
  if (problem.empty_row == EmptyRow::kNan)
    std::fill(output.begin(), output.end(),
              std::numeric_limits<double>::quiet_NaN());
  if (problem.empty_row != EmptyRow::kMean) return;
  const std::int64_t count = problem.len_kv(work.batch);
  KeyRanges all;
  all.append(0, count);
  const std::vector<double> equal(static_cast<std::size_t>(count),
                                  1.0 / static_cast<double>(count));
  mix_values(equal.data(), work.value, problem.head_dim_v, all, output.data());
}

void finish_row(const HeadWork& work, const VariantRow& row,
                const KeyRanges& keys, double* weights,
                std::vector<double>& output) {
  const AttentionVariant& variant = work.variant;
  const std::span<double> all_weights = work.all_keys(weights);
  const std::int64_t channels = work.problem().head_dim_v;
  if (variant.weights) variant.weights(row, keys, all_weights);
  if (variant.mix)
    variant.mix(row, keys, all_weights, work.value, output);
  else
    mix_values(weights, work.value, channels, keys, output.data());
  if (keys.empty()) fill_empty_row(work, output);
  report_weights(work, row, keys, weights);
  if (variant.output) variant.output(row, output);
  if (variant.keeps && !variant.keeps(row)) return;
  work.call.output.store_row(work.batch, work.head, row.place.q_index, 0,
                             channels, output.data());
}

void run_row(const HeadWork& work, std::int64_t q_index, RowBuffers& own) {
  const VariantRow row = work.row(q_index);
  double* scores = own.scores.data();
  find_keys(work, row, own.keys);
  find_scores(work, row, own.keys, own.query, scores);
  report_lse(work, row, own.keys, scores);
  if (work.variant.row_softmax)
    work.variant.row_softmax(row, own.keys, work.all_keys(scores));
  else
    softmax_row(own.keys, scores, sink_of(work, row));
  finish_row(work, row, own.keys, scores, own.output);
}

void run_rows(const HeadWork& work) {
  const std::int64_t seq_len_q = work.problem().len_q(work.batch);
  // Starting threads costs more than a small head.
  const std::int64_t products =
      seq_len_q * work.num_keys *
      (work.problem().head_dim_qk + work.problem().head_dim_v);
#pragma omp parallel if (products > (1 << 22))
  {
    RowBuffers own(work.problem());
#pragma omp for schedule(dynamic, 16)
    for (std::int64_t i = 0; i < seq_len_q; ++i) run_row(work, i, own);
  }
}

VariantScores score_matrix(const HeadWork& work) {
  VariantScores matrix;
  matrix.seq_len_q = work.problem().len_q(work.batch);
  matrix.seq_len_kv = work.num_keys;
  matrix.values.resize(
      static_cast<std::size_t>(matrix.seq_len_q * matrix.seq_len_kv));
  matrix.keys.resize(static_cast<std::size_t>(matrix.seq_len_q));
  RowBuffers own(work.problem());
  for (std::int64_t i = 0; i < matrix.seq_len_q; ++i) {
    KeyRanges& keys = matrix.keys[static_cast<std::size_t>(i)];
    find_keys(work, work.row(i), keys);
    find_scores(work, work.row(i), keys, own.query, matrix.row(i));
    report_lse(work, work.row(i), keys, matrix.row(i));
  }
  return matrix;
}

void finish_matrix(const HeadWork& work, VariantScores& matrix) {
  RowBuffers own(work.problem());
  for (std::int64_t i = 0; i < matrix.seq_len_q; ++i)
    finish_row(work, work.row(i), matrix.keys[static_cast<std::size_t>(i)],
               matrix.row(i), own.output);
}

// One head at a time, all of its batch entries together.
void run_matrices(const AttentionVariant& variant, const AttentionCall& call) {
  const Problem& problem = *call.problem;
  HeadWorks works(variant, call);
  for (std::int64_t h = 0; h < problem.num_heads; ++h) {
    std::vector<VariantScores> matrices;
    for (std::int64_t b = 0; b < problem.batch; ++b)
      matrices.push_back(score_matrix(works.make(b, h)));
    variant.softmax(problem, matrices);
    for (std::int64_t b = 0; b < problem.batch; ++b)
      finish_matrix(works.make(b, h), matrices[static_cast<std::size_t>(b)]);
  }
}

}  // namespace

Status run_variant(const AttentionVariant& variant, const AttentionCall& call) {
  const Problem& problem = *call.problem;
  if (variant.softmax) {
    run_matrices(variant, call);
    return ok_status();
  }
  HeadWorks works(variant, call);
  for (std::int64_t b = 0; b < problem.batch; ++b)
    for (std::int64_t h = 0; h < problem.num_heads; ++h)
      run_rows(works.make(b, h));
  return ok_status();
}

Status append_tokens(const CacheAppend& append) {
  const Problem& problem = *append.problem;
  const auto channels = static_cast<std::size_t>(
      std::max(problem.head_dim_qk, problem.head_dim_v));
  std::vector<double> row(channels);
  for (std::int64_t b = 0; b < problem.batch; ++b)
    for (std::int64_t g = 0; g < problem.num_kv_heads; ++g)
      for (std::int64_t n = 0; n < append.num_new; ++n) {
        const std::int64_t at = problem.len_kv(b) - append.num_new + n;
        append.new_key.load_row(b, g, n, 0, problem.head_dim_qk, row.data());
        append.key.store_row(b, g, at, 0, problem.head_dim_qk, row.data());
        if (problem.value_in_key) continue;
        append.new_value.load_row(b, g, n, 0, problem.head_dim_v, row.data());
        append.value.store_row(b, g, at, 0, problem.head_dim_v, row.data());
      }
  return ok_status();
}

Engine variant_engine(std::string name, std::string description,
                      AttentionVariant variant) {
  Engine engine;
  engine.name = std::move(name);
  engine.description = std::move(description);
  engine.capabilities.numerics = fp64_numerics;
  engine.capabilities.features = all_input_features();
  engine.capabilities.features.push_back(Feature::kLse);
  engine.capabilities.features.push_back(Feature::kWeights);
  engine.append = variant.append ? variant.append : append_tokens;
  engine.run = [variant = std::move(variant)](const AttentionCall& call) {
    return run_variant(variant, call);
  };
  return engine;
}

Numerics fp64_numerics(const Problem&) {
  return {Dtype::kFp64, Dtype::kFp64, Dtype::kFp64, 0, 0};
}

}  // namespace attnguard
