#include "adapters/plugin/c_problem.h"

#include <algorithm>

#include "adapters/plugin/codes.h"
#include "adapters/plugin/window.h"

namespace attnguard::plugin {

CProblem::CProblem(const Problem& problem)
    : problem_(problem), text_(problem.text()) {
  c_.size = sizeof c_;
  c_.text = text_.c_str();
  c_.host = this;
  c_.batch = problem_.batch;
  c_.num_heads = problem_.num_heads;
  c_.num_kv_heads = problem_.num_kv_heads;
  c_.max_seq_len_q = problem_.max_len_q();
  c_.max_seq_len_kv = problem_.max_len_kv();
  c_.head_dim_qk = problem_.head_dim_qk;
  c_.head_dim_v = problem_.head_dim_v;
  c_.dtype = dtype_code(problem_.dtype);
  c_.out_dtype = dtype_code(problem_.output_dtype());
  c_.softmax_scale = problem_.scale();
  c_.softcap = problem_.softcap.value_or(0);
  c_.empty_row = empty_row_code(problem_.empty_row);
  c_.layout = layout_code(problem_.layout);
  c_.value_in_key = problem_.value_in_key ? 1 : 0;
  c_.packed = problem_.packed ? 1 : 0;
  c_.block_size = problem_.block_size;
  c_.alibi_max_bias = problem_.alibi_max_bias.value_or(0);
  c_.shared_prefix = problem_.shared_prefix;
  set_arrays();
  set_mask();
}

void CProblem::set_arrays() {
  for (std::int64_t b = 0; b < problem_.batch; ++b) {
    seq_len_q_.push_back(problem_.len_q(b));
    seq_len_kv_.push_back(problem_.len_kv(b));
  }
  for (std::int64_t head = 0; head < problem_.num_heads; ++head) {
    if (problem_.alibi_max_bias)
      alibi_slopes_.push_back(problem_.alibi_slope(head));
    if (!problem_.sinks.empty()) sinks_.push_back(problem_.sink(head));
  }
  c_.seq_len_q = seq_len_q_.data();
  c_.seq_len_kv = seq_len_kv_.data();
  c_.alibi_slopes = alibi_slopes_.empty() ? nullptr : alibi_slopes_.data();
  c_.sinks = sinks_.empty() ? nullptr : sinks_.data();
}

void CProblem::set_mask() {
  const std::vector<MaskTerm>& terms = problem_.mask.terms();
  std::size_t count = 0;
  for (const MaskTerm& term : terms) count += term.values.size();
  parameters_.reserve(count);  // So that the terms' pointers stay.
  // The names are those of the kinds' tables: literals, which end with 0.
  for (const MaskTerm& term : terms) {
    terms_.push_back({term.kind->name.data(), mask_kind_code(term.kind->name),
                      static_cast<std::uint32_t>(term.values.size()),
                      parameters_.data() + parameters_.size()});
    for (std::size_t i = 0; i < term.values.size(); ++i) {
      const std::vector<std::int64_t>& list = term.values.list(i);
      parameters_.push_back({term.kind->parameters[i].name.data(), list.data(),
                             static_cast<std::int64_t>(list.size())});
    }
  }
  const Window window = window_of(problem_);
  c_.mask_form = mask_form_code(problem_.mask_form);
  c_.mask_terms = terms_.data();
  c_.num_mask_terms = static_cast<std::int64_t>(terms_.size());
  c_.window = window.alignment;
  c_.window_left = window.left;
  c_.window_right = window.right;
  c_.row_ranges = row_ranges;
}

std::size_t CProblem::row_index(std::int64_t batch,
                                std::int64_t q_index) const {
  return static_cast<std::size_t>(batch * c_.max_seq_len_q + q_index);
}

void CProblem::find_ranges() const {
  std::vector<attnguard_key_range> ranges;
  std::vector<std::size_t> begin = {0};
  KeyRanges keys;
  for (std::int64_t b = 0; b < problem_.batch; ++b)
    for (std::int64_t i = 0; i < c_.max_seq_len_q; ++i) {
      keys.clear();
      if (i < problem_.len_q(b))
        problem_.mask.allowed(problem_.row(b, i), keys);
      for (const KeyRange& range : keys.ranges())
        ranges.push_back({range.begin, range.end});
      begin.push_back(ranges.size());
    }
  ranges_ = std::move(ranges);
  row_begin_ = std::move(begin);
}

// Called from the plugin's code: nothing may be thrown.
int CProblem::row_ranges(const attnguard_problem* problem, std::int64_t batch,
                         std::int64_t q_index,
                         const attnguard_key_range** ranges,
                         std::int64_t* count) {
  if (problem == nullptr || problem->host == nullptr || ranges == nullptr ||
      count == nullptr)
    return ATTNGUARD_INVALID_ARGUMENT;
  *ranges = nullptr;
  *count = 0;
  const auto* self = static_cast<const CProblem*>(problem->host);
  if (batch < 0 || batch >= self->problem_.batch || q_index < 0 ||
      q_index >= self->problem_.len_q(batch))
    return ATTNGUARD_INVALID_ARGUMENT;
  try {
    std::call_once(self->ranges_made_, [self] { self->find_ranges(); });
  } catch (...) {
    return ATTNGUARD_OUT_OF_MEMORY;
  }
  const std::size_t row = self->row_index(batch, q_index);
  const std::size_t first = self->row_begin_[row];
  *ranges = self->ranges_.data() + first;
  *count = static_cast<std::int64_t>(self->row_begin_[row + 1] - first);
  return ATTNGUARD_OK;
}

attnguard_tensor c_tensor(const TensorView& view) {
  attnguard_tensor tensor = {};
  if (view.data == nullptr) return tensor;
  tensor.data = view.data;
  tensor.dtype = dtype_code(view.dtype);
  std::copy(view.shape.begin(), view.shape.end(), tensor.shape);
  std::copy(view.strides.begin(), view.strides.end(), tensor.strides);
  return tensor;
}

attnguard_tensor c_tensor(const ConstTensorView& view) {
  // C has one struct for both; the header says which are read only.
  return c_tensor(TensorView{const_cast<std::byte*>(view.data), view.dtype,
                             view.shape, view.strides, view.tokens});
}

attnguard_call c_call(const CProblem& problem, const AttentionCall& call) {
  attnguard_call c = {};
  c.size = sizeof c;
  c.problem = problem.get();
  c.query = c_tensor(call.query);
  c.key = c_tensor(call.key);
  c.value = c_tensor(call.value);
  c.output = c_tensor(call.output);
  c.softmax_lse = c_tensor(call.softmax_lse);
  c.weights = c_tensor(call.weights);
  if (call.mask.data != nullptr) {
    const std::int64_t len_q = c.problem->max_seq_len_q;
    const std::int64_t len_kv = c.problem->max_seq_len_kv;
    c.mask.data = const_cast<std::byte*>(call.mask.data);
    c.mask.dtype = call.mask.form == MaskForm::kAdditive
                       ? dtype_code(problem.problem().dtype)
                       : std::uint32_t{ATTNGUARD_BOOL};
    const Shape4 shape = {c.problem->batch, 1, len_q, len_kv};
    const Shape4 strides = {len_q * len_kv, 0, len_kv, 1};
    std::copy(shape.begin(), shape.end(), c.mask.shape);
    std::copy(strides.begin(), strides.end(), c.mask.strides);
  }
  c.cu_seqlens_q = call.cu_seqlens_q;
  c.cu_seqlens_kv = call.cu_seqlens_kv;
  c.block_table = call.block_table;
  c.block_table_width = call.block_table_width;
  return c;
}

attnguard_append c_append(const CProblem& problem, const CacheAppend& append) {
  attnguard_append c = {};
  c.size = sizeof c;
  c.problem = problem.get();
  c.num_new = append.num_new;
  c.new_key = c_tensor(append.new_key);
  c.new_value = c_tensor(append.new_value);
  c.key = c_tensor(append.key);
  c.value = c_tensor(append.value);
  c.cu_seqlens_kv = append.cu_seqlens_kv;
  c.block_table = append.block_table;
  c.block_table_width = append.block_table_width;
  return c;
}

}  // namespace attnguard::plugin
