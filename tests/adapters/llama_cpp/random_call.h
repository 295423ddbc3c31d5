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

namespace attnguard {

// The tensors of one call, random, with 7.0 in padding slots.
class RandomCall {
 public:
  explicit RandomCall(const Problem& problem) : problem_(problem) {
    call_.problem = &problem_;
    call_.query = fill(TensorRole::kQuery);
    call_.key = fill(TensorRole::kKey);
    call_.value = fill(TensorRole::kValue);
    call_.output = make(TensorRole::kOutput);
    fill_poison(problem_.output_dtype(), call_.output.data,
                problem_.extent(TensorRole::kOutput));
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
  TensorView view_of(TensorRole role) {
    return {buffers_[static_cast<std::size_t>(role)].data(),
            problem_.dtype_of(role), problem_.shape(role),
            problem_.strides(role)};
  }

  TensorView make(TensorRole role) {
    buffers_[static_cast<std::size_t>(role)].resize(
        std::max<std::size_t>(1, problem_.extent(role)) *
        dtype_size(problem_.dtype_of(role)));
    return view_of(role);
  }

  TensorView fill(TensorRole role) {
    const TensorView view = make(role);
    const std::uint64_t seed = derive_seed(7, static_cast<std::uint64_t>(role));
    std::vector<double> row(view.shape[3]);
    std::uint64_t index = 0;
    for (std::int64_t b = 0; b < view.shape[0]; ++b) {
      const std::int64_t length =
          role == TensorRole::kQuery ? problem_.len_q(b) : problem_.len_kv(b);
      for (std::int64_t h = 0; h < view.shape[1]; ++h) {
        for (std::int64_t i = 0; i < view.shape[2]; ++i) {
          for (double& x : row)
            x = i < length ? near_normal(derive_seed(seed, index++)) : 7.0;
          view.store_row(b, h, i, 0, view.shape[3], row.data());
        }
      }
    }
    return view;
  }

  Problem problem_;
  AttentionCall call_;
  std::vector<std::byte> buffers_[4];
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
