#include "guard/probe/execute.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "guard/probe/guarded_buffer.h"

namespace attnguard {

struct Executor::Buffers {
  GuardedBuffer query, key, value, output;
  std::string scores_filled;  // Name of what q and k hold; empty: nothing.

  std::array<GuardedBuffer*, 4> all() {
    return {&query, &key, &value, &output};
  }
};

ConstTensorView Observation::kept(int earlier_call) const {
  ConstTensorView view = output;
  view.data = nullptr;
  const auto found = kept_outputs->find(earlier_call);
  if (found != kept_outputs->end()) view.data = found->second.data();
  return view;
}

Executor::Executor(const Engine& engine, const Problem& problem)
    : engine_(engine),
      problem_(problem),
      memory_(engine.memory ? engine.memory : host_memory()) {}

Executor::~Executor() = default;

Status Executor::allocate() {
  buffers_ = std::make_unique<Buffers>();
  constexpr std::array<TensorRole, 4> kRoles = {
      TensorRole::kQuery, TensorRole::kKey, TensorRole::kValue,
      TensorRole::kOutput};
  for (std::size_t i = 0; i < kRoles.size(); ++i) {
    if (buffers_->all()[i]->allocate(*memory_, problem_, kRoles[i])) continue;
    return {StatusCode::kOutOfMemory,
            "no memory for the " + std::string(tensor_role_name(kRoles[i])) +
                " tensor: " + std::to_string(problem_.extent(kRoles[i])) +
                " elements of " +
                std::string(dtype_name(problem_.dtype_of(kRoles[i]))) +
                "; use a smaller problem"};
  }
  return ok_status();
}

void Executor::fill_inputs(const PlannedCall& planned) {
  Buffers& buffers = *buffers_;
  // Fillers outlive the call: a fault is located by filling the row again.
  const ScorePatternPtr scores = planned.scores;
  const std::vector<ValueBlock> blocks = planned.blocks;
  const auto columns = problem_.head_dim_v;
  if (buffers.scores_filled != scores->name()) {
    buffers.query.fill(
        [scores](std::int64_t b, std::int64_t h, std::int64_t i, double* to) {
          scores->query_row(b, h, i, to);
        });
    buffers.key.fill([scores](std::int64_t b, std::int64_t g, std::int64_t j,
                              double* to) { scores->key_row(b, g, j, to); });
    buffers.scores_filled = scores->name();
  }
  buffers.value.fill([blocks, columns](std::int64_t b, std::int64_t g,
                                       std::int64_t j, double* to) {
    std::fill_n(to, columns, 0.0);
    for (const ValueBlock& block : blocks)
      block.values->value_row(b, g, j, to + block.first_column);
  });
}

Status Executor::run(const Plan& plan, int index, Observation& seen) {
  const PlannedCall& planned = plan.calls()[static_cast<std::size_t>(index)];
  Buffers& buffers = *buffers_;
  fill_inputs(planned);
  buffers.output.poison();
  for (GuardedBuffer* buffer : buffers.all())
    if (Status status = buffer->upload(); !status.ok()) return status;

  AttentionCall call;
  call.problem = &problem_;
  call.query = buffers.query.device_view();
  call.key = buffers.key.device_view();
  call.value = buffers.value.device_view();
  call.output = buffers.output.device_view();
  const auto start = std::chrono::steady_clock::now();
  const Status status = run_engine(engine_, call);
  engine_seconds_ +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  ++engine_calls_;
  if (!status.ok()) return status;

  for (GuardedBuffer* buffer : buffers.all())
    if (Status downloaded = buffer->download(); !downloaded.ok())
      return downloaded;
  seen = Observation{};
  seen.call = index;
  seen.planned = &planned;
  seen.problem = &problem_;
  for (GuardedBuffer* buffer : buffers.all())
    buffer->find_faults(seen.memory_faults);
  // A damaged input is filled anew before the next call.
  if (!seen.memory_faults.empty()) buffers.scores_filled.clear();
  seen.query = buffers.query.host_view();
  seen.key = buffers.key.host_view();
  seen.value = buffers.value.host_view();
  seen.output = buffers.output.host_view();
  if (planned.keep_output) {
    const std::byte* data = seen.output.data;
    const std::size_t bytes =
        static_cast<std::size_t>(problem_.extent(TensorRole::kOutput)) *
        dtype_size(problem_.output_dtype());
    kept_outputs_[index].assign(data, data + bytes);
  }
  seen.kept_outputs = &kept_outputs_;
  return ok_status();
}

}  // namespace attnguard
