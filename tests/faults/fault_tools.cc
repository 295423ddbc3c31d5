#include "tests/faults/fault_tools.h"

namespace attnguard {

Engine stateless_engine(bool faulty,
                        Status (*run)(const AttentionCall&, bool faulty)) {
  Engine engine;
  engine.run = [run, faulty](const AttentionCall& call) {
    return run(call, faulty);
  };
  return engine;
}

Workspace::Workspace(const Shape4& shape)
    : shape_(shape),
      data_(static_cast<std::size_t>(shape[0] * shape[1] * shape[2] * shape[3]),
            0.0) {}

Workspace::Workspace(const ConstTensorView& from) : Workspace(from.shape) {
  const TensorView to = view();
  std::vector<double> row(static_cast<std::size_t>(shape_[3]));
  for (std::int64_t b = 0; b < shape_[0]; ++b)
    for (std::int64_t h = 0; h < shape_[1]; ++h)
      for (std::int64_t s = 0; s < shape_[2]; ++s) {
        from.load_row(b, h, s, 0, shape_[3], row.data());
        to.store_row(b, h, s, 0, shape_[3], row.data());
      }
}

TensorView Workspace::view() {
  return {reinterpret_cast<std::byte*>(data_.data()), Dtype::kFp64, shape_,
          contiguous_strides(shape_)};
}

std::vector<double> Workspace::row(std::int64_t batch, std::int64_t head,
                                   std::int64_t position) {
  std::vector<double> row(static_cast<std::size_t>(shape_[3]));
  view().load_row(batch, head, position, 0, shape_[3], row.data());
  return row;
}

void Workspace::set_row(std::int64_t batch, std::int64_t head,
                        std::int64_t position, const std::vector<double>& row) {
  view().store_row(batch, head, position, 0, shape_[3], row.data());
}

std::int64_t row_number(const Problem& problem, std::int64_t batch,
                        std::int64_t head, std::int64_t q_index) {
  return (batch * problem.num_heads + head) * problem.max_len_q() + q_index;
}

std::int64_t row_number(const VariantRow& row) {
  return row_number(row.problem, row.place.batch, row.head, row.place.q_index);
}

std::size_t num_row_numbers(const Problem& problem) {
  return static_cast<std::size_t>(problem.batch * problem.num_heads *
                                  problem.max_len_q());
}

Workspace attention_of(const AttentionCall& call) {
  Workspace result(call.output.shape);
  AttentionCall own = call;
  own.output = result.view();
  // A variant without hooks does not fail.
  static_cast<void>(run_variant({}, own));
  return result;
}

void store_row(Workspace& from, const AttentionCall& call, std::int64_t batch,
               std::int64_t head, std::int64_t q_index) {
  const std::vector<double> row = from.row(batch, head, q_index);
  call.output.store_row(batch, head, q_index, 0,
                        static_cast<std::int64_t>(row.size()), row.data());
}

TensorView writable(const ConstTensorView& view) {
  return {const_cast<std::byte*>(view.data), view.dtype, view.shape,
          view.strides};
}

}  // namespace attnguard
