// A call as a serving engine makes it: random tokens in memory of the
// problem's layout, and an output that any engine fills.
#ifndef ATTNGUARD_TESTS_RUNTIME_LIVE_CALL_H_
#define ATTNGUARD_TESTS_RUNTIME_LIVE_CALL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "guard/engine/engine.h"
#include "guard/probe/fill.h"
#include "guard/probe/random.h"
#include "guard/problem/placement.h"
#include "guard/problem/problem.h"

namespace attnguard {

class LiveCallData {
 public:
  explicit LiveCallData(const std::string& line, std::uint64_t seed = 1) {
    problem = Problem::parse(line).value();  // Callers write right lines.
    for (TensorRole role : {TensorRole::kQuery, TensorRole::kKey,
                            TensorRole::kValue, TensorRole::kOutput})
      place(role);
    fill(seed);
    mask_ = mask_bytes(problem);
    if (problem.packed) {
      cu_q_ = cumulative_lengths(problem, problem.seq_len_q);
      cu_kv_ = cumulative_lengths(problem, problem.seq_len_kv);
    }
  }
  LiveCallData(const LiveCallData&) = delete;
  LiveCallData& operator=(const LiveCallData&) = delete;

  // Fresh random tokens everywhere.
  void fill(std::uint64_t seed) {
    for (TensorRole role :
         {TensorRole::kQuery, TensorRole::kKey, TensorRole::kValue})
      fill(role, seed);
  }

  AttentionCall call() {
    AttentionCall call;
    call.problem = &problem;
    call.query = view(TensorRole::kQuery);
    call.key = view(TensorRole::kKey);
    call.value = problem.value_in_key ? view(TensorRole::kKey)
                                      : view(TensorRole::kValue);
    call.value.shape[3] = problem.head_dim_v;
    call.output = view(TensorRole::kOutput);
    call.mask = {problem.mask_form, mask_.empty() ? nullptr : mask_.data()};
    if (problem.packed) {
      call.cu_seqlens_q = cu_q_.data();
      call.cu_seqlens_kv = cu_kv_.data();
    }
    if (problem.block_size > 0) {
      const TokenMap& map = *tensor(TensorRole::kKey).placement.tokens;
      call.block_table = map.table.data();
      call.block_table_width = map.width;
    }
    return call;
  }

  TensorView view(TensorRole role) {
    Tensor& from = tensor(role);
    return {from.bytes.data(), problem.dtype_of(role), from.placement.shape,
            from.placement.strides, from.placement.tokens.get()};
  }

  Problem problem;

 private:
  struct Tensor {
    Placement placement;
    std::vector<std::byte> bytes;
  };

  Tensor& tensor(TensorRole role) {
    return tensors_[static_cast<std::size_t>(role)];
  }

  void place(TensorRole role) {
    Tensor& to = tensor(role);
    to.placement = place_tensor(problem, role);
    to.bytes.assign(static_cast<std::size_t>(to.placement.extent) *
                        dtype_size(problem.dtype_of(role)),
                    std::byte{0});
  }

  void fill(TensorRole role, std::uint64_t seed) {
    const TensorView to = view(role);
    std::vector<double> row(static_cast<std::size_t>(to.shape[3]));
    for (std::int64_t b = 0; b < problem.batch; ++b) {
      const std::int64_t tokens =
          role == TensorRole::kQuery ? problem.len_q(b) : problem.len_kv(b);
      for (std::int64_t h = 0; h < to.shape[1]; ++h)
        for (std::int64_t i = 0; i < tokens; ++i) {
          const std::int64_t owner =
              role == TensorRole::kQuery ? b : problem.owner(b, i);
          fill_random_row(seed, role, owner, h, i, 1.0, to.shape[3],
                          row.data());
          to.store_row(b, h, i, 0, to.shape[3], row.data());
        }
    }
  }

  std::array<Tensor, 4> tensors_;
  std::vector<std::byte> mask_;
  std::vector<std::int32_t> cu_q_, cu_kv_;
};

}  // namespace attnguard

#endif  // ATTNGUARD_TESTS_RUNTIME_LIVE_CALL_H_
