// A finished call as an engine leaves it, on any layout: random inputs, the
// output of fp64 attention, and what the test makes wrong in it.
#ifndef ATTNGUARD_TESTS_RUNTIME_LIVE_TENSORS_H_
#define ATTNGUARD_TESTS_RUNTIME_LIVE_TENSORS_H_

#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "guard/base/rng.h"
#include "guard/engine/reference.h"
#include "guard/problem/placement.h"
#include "guard/runtime/violation.h"
#include "tests/support/problems.h"

namespace attnguard {

class LiveTensors {
 public:
  explicit LiveTensors(const std::string& line, std::uint64_t seed = 1)
      : problem_(problem_of(line)) {
    for (TensorRole role : kRoles) {
      Part& part = part_of(role);
      part.placement = place_tensor(problem_, role);
      const Dtype dtype = problem_.dtype_of(role);
      part.bytes.resize(static_cast<std::size_t>(part.placement.extent) *
                        dtype_size(dtype));
      fill_poison(dtype, part.bytes.data(), part.placement.extent);
    }
    for (TensorRole role :
         {TensorRole::kQuery, TensorRole::kKey, TensorRole::kValue})
      fill(role, derive_seed(seed, static_cast<std::uint64_t>(role)));
    attend();
  }

  const Problem& problem() const { return problem_; }

  TensorView view(TensorRole role) {
    Part& part = part_of(role);
    return {part.bytes.data(), problem_.dtype_of(role), part.placement.shape,
            part.placement.strides, part.placement.tokens.get()};
  }

  // The output becomes that of fp64 attention.
  void attend() {
    const ReferenceInputs inputs = {&problem_, view(TensorRole::kQuery),
                                    view(TensorRole::kKey),
                                    view(TensorRole::kValue)};
    const TensorView output = view(TensorRole::kOutput);
    ReferenceRow row;
    for (std::int64_t b = 0; b < problem_.batch; ++b)
      for (std::int64_t h = 0; h < problem_.num_heads; ++h)
        for (std::int64_t i = 0; i < problem_.len_q(b); ++i) {
          reference_row(inputs, b, h, i, row);
          output.store_row(b, h, i, 0, problem_.head_dim_v, row.output.data());
        }
  }

  void set_output(std::int64_t b, std::int64_t head, std::int64_t query,
                  double value) {
    view(TensorRole::kOutput).store_row(b, head, query, 0, 1, &value);
  }

  AttentionCall call() {
    cu_q_ = cumulative_lengths(problem_, problem_.seq_len_q);
    cu_kv_ = cumulative_lengths(problem_, problem_.seq_len_kv);
    AttentionCall call{.problem = &problem_,
                       .query = view(TensorRole::kQuery),
                       .key = view(TensorRole::kKey),
                       .value = view(TensorRole::kValue),
                       .output = view(TensorRole::kOutput)};
    if (problem_.packed) {
      call.cu_seqlens_q = cu_q_.data();
      call.cu_seqlens_kv = cu_kv_.data();
    }
    if (problem_.block_size > 0) {
      const TokenMap& map = *part_of(TensorRole::kKey).placement.tokens;
      call.block_table = map.table.data();
      call.block_table_width = map.width;
    }
    return call;
  }

 private:
  struct Part {
    Placement placement;
    std::vector<std::byte> bytes;
  };
  static constexpr std::array kRoles = {TensorRole::kQuery, TensorRole::kKey,
                                        TensorRole::kValue,
                                        TensorRole::kOutput};

  Part& part_of(TensorRole role) {
    return parts_[static_cast<std::size_t>(role)];
  }

  void fill(TensorRole role, std::uint64_t seed) {
    const TensorView tensor = view(role);
    std::vector<double> row(static_cast<std::size_t>(tensor.shape[3]));
    for (std::int64_t b = 0; b < problem_.batch; ++b)
      for (std::int64_t h = 0; h < tensor.shape[1]; ++h)
        for (std::int64_t s = 0;
             s < (role == TensorRole::kQuery ? problem_.len_q(b)
                                             : problem_.len_kv(b));
             ++s) {
          for (double& x : row) x = near_normal(seed = mix_bits(seed));
          tensor.store_row(b, h, s, 0, tensor.shape[3], row.data());
        }
  }

  Problem problem_;
  std::array<Part, 4> parts_;
  std::vector<std::int32_t> cu_q_, cu_kv_;
};

// A violation of `call` in one row, with what the sinks get of it.
struct TestViolation {
  AttentionCall call;
  std::vector<Finding> findings;
  RuntimeSettings settings;
  ObserveContext context;
  Violation violation;

  TestViolation(LiveTensors& tensors, std::int64_t b, std::int64_t head,
                std::int64_t query, ActionSet actions,
                std::string_view layer = "blk.7.attn")
      : call(tensors.call()) {
    findings.push_back({.kind = FindingKind::kValue,
                        .probe = "live",
                        .batch = b,
                        .head = head,
                        .query = query,
                        .channel = 0,
                        .observed = 9,
                        .expected = 1,
                        .bound = 0.5,
                        .message = "output channel 0 is 9"});
    violation.check = LiveCheck::kRecompute;
    violation.actions = actions;
    violation.layer = layer;
    violation.layer_group = layer;
    violation.findings = findings;
    violation.num_findings = 1;
    violation.call = &call;
    violation.context = &context;
    violation.numerics = default_numerics(tensors.problem());
    violation.settings = &settings;
    violation.seed = 5;
    violation.call_number = 17;
  }
  TestViolation(const TestViolation&) = delete;
  TestViolation& operator=(const TestViolation&) = delete;
};

}  // namespace attnguard

#endif  // ATTNGUARD_TESTS_RUNTIME_LIVE_TENSORS_H_
