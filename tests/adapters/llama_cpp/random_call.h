// An attention call with tensors of its own, filled at random.
#ifndef ATTNGUARD_TESTS_ADAPTERS_LLAMA_CPP_RANDOM_CALL_H_
#define ATTNGUARD_TESTS_ADAPTERS_LLAMA_CPP_RANDOM_CALL_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "guard/base/rng.h"
#include "guard/engine/engine.h"
#include "guard/problem/key_ranges.h"
#include "guard/problem/placement.h"

namespace attnguard {

// The tensors of one call on any layout, random, with 7.0 where no token is.
class RandomCall {
 public:
  explicit RandomCall(const Problem& problem) : problem_(problem) {
    for (TensorRole role : {TensorRole::kQuery, TensorRole::kKey,
                            TensorRole::kValue, TensorRole::kOutput})
      placement(role) = place_tensor(problem_, role);
    call_.problem = &problem_;
    call_.query = fill(TensorRole::kQuery);
    call_.key = fill(TensorRole::kKey);
    call_.value = problem_.value_in_key ? view_of(TensorRole::kValue)
                                        : fill(TensorRole::kValue);
    call_.output = make(TensorRole::kOutput);
    fill_poison(problem_.output_dtype(), call_.output.data,
                problem_.extent(TensorRole::kOutput));
    if (problem_.mask_form != MaskForm::kImplied) fill_mask();
  }

  // The same tensors, described as another problem of the same shape.
  AttentionCall as(const Problem& other) const {
    AttentionCall call = call_;
    call.problem = &other;
    return call;
  }

  // Asks for the weights, [batch, num_heads, max seq_len_q, max seq_len_kv].
  TensorView ask_for_weights() {
    const Shape4 shape = {problem_.batch, problem_.num_heads,
                          problem_.max_len_q(), problem_.max_len_kv()};
    weights_.assign(
        static_cast<std::size_t>(shape[0] * shape[1] * shape[2] * shape[3]),
        -1.0f);
    call_.weights = {reinterpret_cast<std::byte*>(weights_.data()),
                     Dtype::kFp32, shape, contiguous_strides(shape)};
    return call_.weights;
  }

  const Problem& problem() const { return problem_; }
  const AttentionCall& call() const { return call_; }
  const std::vector<std::byte>& output_bytes() const {
    return buffers_[static_cast<std::size_t>(TensorRole::kOutput)];
  }

  // Sets every channel of one slot of key and value.
  void set_key_slot(std::int64_t batch, std::int64_t position, double value) {
    for (TensorRole role : {TensorRole::kKey, TensorRole::kValue}) {
      const TensorView view = view_of(role);
      const std::vector<double> row(view.shape[3], value);
      for (std::int64_t h = 0; h < view.shape[1]; ++h)
        view.store_row(batch, h, position, 0, view.shape[3], row.data());
    }
  }

  void set_all(TensorRole role, double value) {
    const TensorView view = view_of(role);
    const std::vector<double> row(view.shape[3], value);
    for (std::int64_t b = 0; b < view.shape[0]; ++b)
      for (std::int64_t h = 0; h < view.shape[1]; ++h)
        for (std::int64_t i = 0; i < view.shape[2]; ++i)
          view.store_row(b, h, i, 0, view.shape[3], row.data());
  }

 private:
  Placement& placement(TensorRole role) {
    return placements_[static_cast<std::size_t>(role)];
  }

  TensorView view_of(TensorRole role) {
    const bool in_key = role == TensorRole::kValue && problem_.value_in_key;
    const TensorRole owner = in_key ? TensorRole::kKey : role;
    const Placement& place = placement(role);
    return {buffers_[static_cast<std::size_t>(owner)].data(),
            problem_.dtype_of(role), place.shape, place.strides,
            place.tokens.get()};
  }

  TensorView make(TensorRole role) {
    buffers_[static_cast<std::size_t>(role)].resize(
        std::max<std::size_t>(1, problem_.extent(role)) *
        dtype_size(problem_.dtype_of(role)));
    return view_of(role);
  }

  TensorView fill(TensorRole role) {
    const TensorView view = make(role);
    const std::vector<double> nothing(problem_.extent(role), 7.0);
    encode(view.dtype, nothing.data(), problem_.extent(role), view.data, 1);
    const std::uint64_t seed = derive_seed(7, static_cast<std::uint64_t>(role));
    std::vector<double> row(view.shape[3]);
    std::uint64_t index = 0;
    for (std::int64_t b = 0; b < view.shape[0]; ++b) {
      const std::int64_t length =
          role == TensorRole::kQuery ? problem_.len_q(b) : problem_.len_kv(b);
      for (std::int64_t h = 0; h < view.shape[1]; ++h) {
        for (std::int64_t i = 0; i < length; ++i) {
          for (double& x : row) x = near_normal(derive_seed(seed, index++));
          view.store_row(b, h, i, 0, view.shape[3], row.data());
        }
      }
    }
    return view;
  }

  void fill_mask() {
    const bool additive = problem_.mask_form == MaskForm::kAdditive;
    const std::size_t size = additive ? dtype_size(problem_.dtype) : 1;
    const std::int64_t rows = problem_.max_len_q(),
                       keys = problem_.max_len_kv();
    mask_.resize(static_cast<std::size_t>(problem_.batch * rows * keys) * size);
    KeyRanges allowed;
    for (std::int64_t b = 0; b < problem_.batch; ++b) {
      for (std::int64_t q = 0; q < problem_.len_q(b); ++q) {
        problem_.mask.allowed(problem_.row(b, q), allowed);
        for (std::int64_t j = 0; j < keys; ++j) {
          const bool may = allowed.contains(j);
          std::byte* const to =
              mask_.data() + ((b * rows + q) * keys + j) * size;
          const double element = may ? 0 : -INFINITY;
          if (additive)
            encode(problem_.dtype, &element, 1, to, 1);
          else
            *to = std::byte{may == (problem_.mask_form == MaskForm::kBoolean)};
        }
      }
    }
    call_.mask = {problem_.mask_form, mask_.data()};
  }

  Problem problem_;
  AttentionCall call_;
  Placement placements_[4];
  std::vector<std::byte> buffers_[4];
  std::vector<std::byte> mask_;
  std::vector<float> weights_;
};

inline std::vector<double> row_of(const ConstTensorView& view, std::int64_t b,
                                  std::int64_t h, std::int64_t i) {
  std::vector<double> row(view.shape[3]);
  view.load_row(b, h, i, 0, view.shape[3], row.data());
  return row;
}

inline double max_abs(std::span<const double> row) {
  double result = 0;
  for (double x : row) result = std::max(result, std::abs(x));
  return result;
}

}  // namespace attnguard

#endif  // ATTNGUARD_TESTS_ADAPTERS_LLAMA_CPP_RANDOM_CALL_H_
