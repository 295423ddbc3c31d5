// What the engines of this folder are made of.
#ifndef ATTNGUARD_TESTS_FAULTS_FAULT_TOOLS_H_
#define ATTNGUARD_TESTS_FAULTS_FAULT_TOOLS_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "guard/engine/attention_variant.h"
#include "guard/engine/engine.h"

namespace attnguard {

// An engine that computes in fp64, declares the rounding of fp32 and has a
// State of its own that outlives a call. `run` gets the call and the state.
template <typename State>
Engine stateful_engine(State initial,
                       Status (*run)(const AttentionCall&, State&)) {
  Engine engine;
  engine.run = [run, state = std::make_shared<State>(std::move(initial))](
                   const AttentionCall& call) { return run(call, *state); };
  return engine;
}

// An engine without memory; `run` also hears whether it is to be faulty.
Engine stateless_engine(bool faulty,
                        Status (*run)(const AttentionCall&, bool faulty));

// A tensor of the engine's own, fp64 without gaps: workspace.
class Workspace {
 public:
  Workspace() = default;
  explicit Workspace(const Shape4& shape);  // zeros
  explicit Workspace(const ConstTensorView& from);

  const Shape4& shape() const { return shape_; }
  bool empty() const { return data_.empty(); }
  TensorView view();

  // The elements of one row.
  std::vector<double> row(std::int64_t batch, std::int64_t head,
                          std::int64_t position);
  void set_row(std::int64_t batch, std::int64_t head, std::int64_t position,
               const std::vector<double>& row);

 private:
  Shape4 shape_ = {0, 0, 0, 0};
  std::vector<double> data_;
};

// Calls visit(batch, head, q_index) for every output row of the call.
template <typename Visit>
void for_each_output_row(const Problem& problem, Visit visit) {
  for (std::int64_t b = 0; b < problem.batch; ++b)
    for (std::int64_t h = 0; h < problem.num_heads; ++h)
      for (std::int64_t i = 0; i < problem.len_q(b); ++i) visit(b, h, i);
}

// A number of its own for every output row of a problem, below
// batch * num_heads * max_len_q.
std::int64_t row_number(const Problem& problem, std::int64_t batch,
                        std::int64_t head, std::int64_t q_index);
std::int64_t row_number(const VariantRow& row);
std::size_t num_row_numbers(const Problem& problem);

// Correct attention into a workspace of the output's shape.
Workspace attention_of(const AttentionCall& call);

// Writes one row of the workspace to the call's output.
void store_row(Workspace& from, const AttentionCall& call, std::int64_t batch,
               std::int64_t head, std::int64_t q_index);

// What a kernel that writes to its inputs does.
TensorView writable(const ConstTensorView& view);

}  // namespace attnguard

#endif  // ATTNGUARD_TESTS_FAULTS_FAULT_TOOLS_H_
