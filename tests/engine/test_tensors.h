// The tensors of one attention call for tests: random inputs, a poisoned
// output, poison in every gap and padding slot, guard bytes behind each tensor.
#ifndef ATTNGUARD_TESTS_ENGINE_TEST_TENSORS_H_
#define ATTNGUARD_TESTS_ENGINE_TEST_TENSORS_H_

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "guard/base/rng.h"
#include "guard/engine/engine.h"
#include "guard/engine/reference.h"
#include "tests/support/problems.h"

namespace attnguard {

class TestTensors {
 public:
  explicit TestTensors(Problem problem, std::uint64_t seed = 1);

  const Problem& problem() const { return problem_; }

  // Value of element (batch, head, position, channel).
  using Fill = std::function<double(std::int64_t, std::int64_t, std::int64_t,
                                    std::int64_t)>;
  void fill(TensorRole role, const Fill& value);

  // Puts quiet NaNs into the key and the value at this place.
  void poison_key(std::int64_t batch, std::int64_t kv_head,
                  std::int64_t kv_index);

  AttentionCall call();
  ReferenceInputs inputs();
  TensorView view(TensorRole role);

  // Runs the engine on a freshly poisoned output; fails the test when the
  // engine does. Returns the output: [batch, num_heads, len_q, head_dim_v],
  // only rows within each entry's own length.
  std::vector<double> run(const Engine& engine);

  // One element of the output of the last run.
  double output(std::int64_t batch, std::int64_t head, std::int64_t q_index,
                std::int64_t channel = 0);

  // Raw memory of a tensor, guard bytes included.
  const std::vector<std::byte>& bytes(TensorRole role) const {
    return buffers_[static_cast<std::size_t>(role)];
  }

  static constexpr std::int64_t kGuardBytes = 64;

 private:
  void poison(TensorRole role);

  Problem problem_;
  std::vector<std::byte> buffers_[4];
};

// Where an output leaves the reference's bound, or empty. Names the first row
// that does.
inline std::string outside_bound(TestTensors& tensors, const Engine& engine);

inline TestTensors::TestTensors(Problem problem, std::uint64_t seed)
    : problem_(std::move(problem)) {
  for (TensorRole role : {TensorRole::kQuery, TensorRole::kKey,
                          TensorRole::kValue, TensorRole::kOutput}) {
    poison(role);
    if (role == TensorRole::kOutput) continue;
    const std::uint64_t tensor_seed =
        derive_seed(seed, static_cast<std::uint64_t>(role));
    std::uint64_t count = 0;
    fill(role, [&](auto...) {
      return near_normal(derive_seed(tensor_seed, count++));
    });
  }
}

inline void TestTensors::poison(TensorRole role) {
  const Dtype dtype = problem_.dtype_of(role);
  const auto elements =
      problem_.extent(role) +
      kGuardBytes / static_cast<std::int64_t>(dtype_size(dtype));
  auto& buffer = buffers_[static_cast<std::size_t>(role)];
  buffer.resize(static_cast<std::size_t>(elements) * dtype_size(dtype));
  fill_poison(dtype, buffer.data(), elements);
}

inline TensorView TestTensors::view(TensorRole role) {
  return {buffers_[static_cast<std::size_t>(role)].data(),
          problem_.dtype_of(role), problem_.shape(role),
          problem_.strides(role)};
}

inline void TestTensors::fill(TensorRole role, const Fill& value) {
  const TensorView tensor = view(role);
  const bool by_query =
      role == TensorRole::kQuery || role == TensorRole::kOutput;
  for (std::int64_t b = 0; b < tensor.shape[0]; ++b) {
    const std::int64_t length =
        by_query ? problem_.len_q(b) : problem_.len_kv(b);
    for (std::int64_t h = 0; h < tensor.shape[1]; ++h)
      for (std::int64_t s = 0; s < length; ++s)
        for (std::int64_t c = 0; c < tensor.shape[3]; ++c) {
          const double x = value(b, h, s, c);
          tensor.store_row(b, h, s, c, 1, &x);
        }
  }
}

inline void TestTensors::poison_key(std::int64_t batch, std::int64_t kv_head,
                                    std::int64_t kv_index) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (TensorRole role : {TensorRole::kKey, TensorRole::kValue}) {
    const TensorView tensor = view(role);
    for (std::int64_t c = 0; c < tensor.shape[3]; ++c)
      tensor.store_row(batch, kv_head, kv_index, c, 1, &nan);
  }
}

inline AttentionCall TestTensors::call() {
  return {&problem_, view(TensorRole::kQuery), view(TensorRole::kKey),
          view(TensorRole::kValue), view(TensorRole::kOutput)};
}

inline ReferenceInputs TestTensors::inputs() {
  return {&problem_, view(TensorRole::kQuery), view(TensorRole::kKey),
          view(TensorRole::kValue)};
}

inline std::vector<double> TestTensors::run(const Engine& engine) {
  poison(TensorRole::kOutput);
  EXPECT_EQ(unsupported_reason(engine, problem_), "") << problem_.text();
  const Status status = run_engine(engine, call());
  EXPECT_TRUE(status.ok()) << status.message();
  const TensorView out = view(TensorRole::kOutput);
  std::vector<double> values;
  std::vector<double> row(static_cast<std::size_t>(problem_.head_dim_v));
  for (std::int64_t b = 0; b < problem_.batch; ++b)
    for (std::int64_t h = 0; h < problem_.num_heads; ++h)
      for (std::int64_t i = 0; i < problem_.len_q(b); ++i) {
        out.load_row(b, h, i, 0, problem_.head_dim_v, row.data());
        values.insert(values.end(), row.begin(), row.end());
      }
  return values;
}

inline double TestTensors::output(std::int64_t batch, std::int64_t head,
                                  std::int64_t q_index, std::int64_t channel) {
  double value = 0;
  view(TensorRole::kOutput).load_row(batch, head, q_index, channel, 1, &value);
  return value;
}

inline std::string outside_bound(TestTensors& tensors, const Engine& engine) {
  const Problem& problem = tensors.problem();
  tensors.run(engine);
  const Numerics numerics = numerics_of(engine, problem);
  const DecodedInputs decoded(tensors.inputs());
  ReferenceRow row;
  for (std::int64_t b = 0; b < problem.batch; ++b)
    for (std::int64_t h = 0; h < problem.num_heads; ++h)
      for (std::int64_t i = 0; i < problem.len_q(b); ++i) {
        reference_row(decoded.inputs(), b, h, i, row);
        for (std::int64_t c = 0; c < problem.head_dim_v; ++c) {
          const double seen = tensors.output(b, h, i, c);
          const double wanted = row.output[static_cast<std::size_t>(c)];
          const double bound = reference_bound(problem, numerics, row, c);
          if (std::abs(seen - wanted) <= bound) continue;
          if (std::isnan(seen) && std::isnan(wanted)) continue;
          return engine.name + " on " + problem.text() + ": [" +
                 std::to_string(b) + "," + std::to_string(h) + "," +
                 std::to_string(i) + "," + std::to_string(c) + "] is " +
                 std::to_string(seen) + ", reference " +
                 std::to_string(wanted) + ", bound " + std::to_string(bound);
        }
      }
  return {};
}

}  // namespace attnguard

#endif  // ATTNGUARD_TESTS_ENGINE_TEST_TENSORS_H_
