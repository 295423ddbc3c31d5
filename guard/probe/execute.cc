#include "guard/probe/execute.h"

#include <algorithm>
#include <chrono>

#include "guard/probe/fill.h"
#include "guard/probe/guarded_buffer.h"

namespace attnguard {
namespace {

// A dense tensor of the engine's that is no TensorRole.
Placement dense_placement(const Shape4& shape) {
  Placement placement;
  placement.shape = shape;
  placement.strides = contiguous_strides(shape);
  placement.extent = shape[0] * shape[1] * shape[2] * shape[3];
  placement.slots.assign(static_cast<std::size_t>(shape[0]), shape[2]);
  return placement;
}

Dtype side_dtype(const Problem& problem) {
  return problem.dtype == Dtype::kFp64 ? Dtype::kFp64 : Dtype::kFp32;
}

// The element that a byte, counted from the tensor's start, belongs to.
std::int64_t element_of(std::int64_t byte, std::size_t element_size) {
  const auto size = static_cast<std::int64_t>(element_size);
  return byte >= 0 ? byte / size : -((-byte + size - 1) / size);
}

// The mask in the engine's memory with guard bytes on both sides, and a copy
// to compare it with.
class MaskBuffer {
 public:
  MaskBuffer() = default;
  MaskBuffer(const MaskBuffer&) = delete;
  MaskBuffer& operator=(const MaskBuffer&) = delete;
  ~MaskBuffer() {
    if (data_ != nullptr) memory_->release(data_);
  }

  Status allocate(Memory& memory, const Problem& problem) {
    memory_ = &memory;
    const std::vector<std::byte> mask = mask_bytes(problem);
    if (mask.empty()) return ok_status();
    size_ = mask.size();
    if (problem.mask_form == MaskForm::kAdditive)
      element_size_ = dtype_size(problem.dtype);
    const Result<void*> data =
        allocate_tensor(memory, "mask", size_, kGuardBytes);
    if (!data.ok()) return data.status();
    data_ = static_cast<std::byte*>(data.value());
    bytes_.assign(size_ + 2 * kGuardBytes, kGuardByte);
    std::copy(mask.begin(), mask.end(), bytes_.begin() + kGuardBytes);
    return memory.copy_in(data_, bytes_.data(), bytes_.size());
  }

  // nullptr when the mask is implied.
  const std::byte* data() const {
    return data_ == nullptr ? nullptr : data_ + kGuardBytes;
  }
  std::size_t element_size() const { return element_size_; }

  Status find_fault(std::vector<MemoryFault>& faults) {
    if (bytes_.empty()) return ok_status();
    std::vector<std::byte> now(bytes_.size());
    if (Status status = memory_->copy_out(now.data(), data_, now.size());
        !status.ok())
      return status;
    const auto found = std::mismatch(now.begin(), now.end(), bytes_.begin());
    if (found.first == now.end()) return ok_status();
    const auto at = static_cast<std::size_t>(found.first - now.begin());
    faults.push_back(
        {.tensor = "mask",
         .place = at < kGuardBytes            ? MemoryFault::Place::kBefore
                  : at >= kGuardBytes + size_ ? MemoryFault::Place::kAfter
                                              : MemoryFault::Place::kInput,
         .element = element_of(static_cast<std::int64_t>(at) -
                                   static_cast<std::int64_t>(kGuardBytes),
                               element_size_)});
    return memory_->copy_in(data_, bytes_.data(), bytes_.size());
  }

 private:
  Memory* memory_ = nullptr;
  std::vector<std::byte> bytes_;  // guard, mask, guard
  std::size_t size_ = 0;          // of the mask
  std::size_t element_size_ = 1;
  std::byte* data_ = nullptr;
};

// Integers that the engine is given beside the tensors.
class IndexArray {
 public:
  void set(std::string_view name, std::vector<std::int32_t> values) {
    name_ = name;
    values_ = std::move(values);
    given_ = values_;
  }
  const std::int32_t* data() const {
    return given_.empty() ? nullptr : given_.data();
  }
  std::string_view name() const { return name_; }
  void find_fault(std::vector<MemoryFault>& faults) {
    const auto found =
        std::mismatch(given_.begin(), given_.end(), values_.begin());
    if (found.first == given_.end()) return;
    faults.push_back({.tensor = name_,
                      .place = MemoryFault::Place::kInput,
                      .element = found.first - given_.begin()});
    given_ = values_;
  }

 private:
  std::string_view name_;
  std::vector<std::int32_t> values_, given_;
};

}  // namespace

// What one problem's calls work on.
struct Executor::Tensors {
  std::shared_ptr<const Problem> owned;  // Keeps a derived problem alive.
  const Problem* problem = nullptr;
  double largest = 0;  // Largest input that the engine takes.
  GuardedBuffer query, key, value, output;
  // Allocated when they are asked for, of the shape that is asked for.
  using SideBuffer = std::unique_ptr<GuardedBuffer>;
  SideBuffer softmax_lse, weights, new_key, new_value;
  MaskBuffer mask;
  IndexArray cu_seqlens_q, cu_seqlens_kv, block_table;
  std::int64_t block_table_width = 0;
  std::string scores_filled;  // Name of what q and k hold; empty: nothing.

  std::vector<GuardedBuffer*> buffers() {
    if (problem->value_in_key) return {&query, &key, &output};
    return {&query, &key, &value, &output};
  }

  // The value within the key, or the value's own.
  template <typename View>
  static View value_of(View key_view, const Problem& problem) {
    key_view.shape[3] = problem.head_dim_v;
    return key_view;
  }
  TensorView host_value() {
    return problem->value_in_key ? value_of(key.host_view(), *problem)
                                 : value.host_view();
  }
  TensorView device_value() {
    return problem->value_in_key ? value_of(key.device_view(), *problem)
                                 : value.device_view();
  }

  Status allocate(Memory& memory);
  Status allocate_side(Memory& memory, SideBuffer& buffer,
                       std::string_view name, Dtype dtype, const Shape4& shape);
  void fill(const PlannedCall& planned);
  AttentionCall call();

  // Appends what the memory noticed to `faults`, but no write that is at the
  // same side of the same tensor in `known`, as the bytes there have it too.
  void add_stray_accesses(const std::vector<StrayAccess>& accesses,
                          std::vector<MemoryFault> known,
                          std::vector<MemoryFault>& faults);
  MemoryFault located(const StrayAccess& access);
};

Status Executor::Tensors::allocate(Memory& memory) {
  const auto place = [&](GuardedBuffer& buffer, TensorRole role) {
    return buffer.allocate(memory, tensor_role_name(role),
                           problem->dtype_of(role),
                           place_tensor(*problem, role));
  };
  if (Status status = place(query, TensorRole::kQuery); !status.ok())
    return status;
  if (Status status = place(key, TensorRole::kKey); !status.ok()) return status;
  if (!problem->value_in_key)
    if (Status status = place(value, TensorRole::kValue); !status.ok())
      return status;
  if (Status status = place(output, TensorRole::kOutput); !status.ok())
    return status;
  if (problem->packed) {
    cu_seqlens_q.set("cu_seqlens_q",
                     cumulative_lengths(*problem, problem->seq_len_q));
    cu_seqlens_kv.set("cu_seqlens_kv",
                      cumulative_lengths(*problem, problem->seq_len_kv));
  }
  if (problem->block_size > 0) {
    const TokenMap& map = *key.placement().tokens;
    block_table_width = map.width;
    block_table.set(
        "block_table",
        {map.table.begin(), map.table.begin() + problem->batch * map.width});
  }
  return mask.allocate(memory, *problem);
}

Status Executor::Tensors::allocate_side(Memory& memory, SideBuffer& buffer,
                                        std::string_view name, Dtype dtype,
                                        const Shape4& shape) {
  if (buffer && buffer->placement().shape == shape) return ok_status();
  buffer = std::make_unique<GuardedBuffer>();
  Status status = buffer->allocate(memory, name, dtype, dense_placement(shape));
  if (!status.ok()) buffer.reset();
  return status;
}

void Executor::Tensors::fill(const PlannedCall& planned) {
  // Fillers outlive the call: a fault is located by filling the row again.
  std::string filled = planned.scores->name() + '|' +
                       std::to_string(static_cast<int>(planned.mode.unused));
  if (problem->value_in_key) filled += '|' + planned.name();
  if (scores_filled != filled) {
    query.fill(row_filler(*problem, planned, TensorRole::kQuery, largest));
    key.fill(row_filler(*problem, planned, TensorRole::kKey, largest));
    scores_filled = filled;
  }
  if (!problem->value_in_key)
    value.fill(row_filler(*problem, planned, TensorRole::kValue, largest));
}

AttentionCall Executor::Tensors::call() {
  AttentionCall call;
  call.problem = problem;
  call.query = query.device_view();
  call.key = key.device_view();
  call.value = device_value();
  call.output = output.device_view();
  call.mask = {problem->mask_form, mask.data()};
  call.cu_seqlens_q = cu_seqlens_q.data();
  call.cu_seqlens_kv = cu_seqlens_kv.data();
  call.block_table = block_table.data();
  call.block_table_width = block_table_width;
  return call;
}

MemoryFault Executor::Tensors::located(const StrayAccess& access) {
  MemoryFault fault{.tensor = "unknown",
                    .place = access.byte < 0 ? MemoryFault::Place::kBefore
                                             : MemoryFault::Place::kAfter,
                    .element = access.byte,
                    .access = access.kind};
  const auto is_at = [&](std::string_view name, const void* data,
                         std::size_t element_size) {
    if (data == nullptr || data != access.tensor) return;
    fault.tensor = name;
    fault.element = element_of(access.byte, element_size);
  };
  for (GuardedBuffer* buffer :
       {&query, &key, &value, &output, softmax_lse.get(), weights.get(),
        new_key.get(), new_value.get()}) {
    if (buffer == nullptr || !buffer->is_allocated()) continue;
    const TensorView view = buffer->device_view();
    is_at(buffer->name(), view.data, dtype_size(view.dtype));
  }
  is_at("mask", mask.data(), mask.element_size());
  for (const IndexArray* array : {&cu_seqlens_q, &cu_seqlens_kv, &block_table})
    is_at(array->name(), array->data(), sizeof(std::int32_t));
  return fault;
}

void Executor::Tensors::add_stray_accesses(
    const std::vector<StrayAccess>& accesses, std::vector<MemoryFault> known,
    std::vector<MemoryFault>& faults) {
  known.insert(known.end(), faults.begin(), faults.end());
  for (const StrayAccess& access : accesses) {
    const MemoryFault fault = located(access);
    if (access.kind != StrayAccess::Kind::kRead &&
        std::any_of(known.begin(), known.end(), [&](const MemoryFault& other) {
          return other.tensor == fault.tensor && other.place == fault.place;
        }))
      continue;
    faults.push_back(fault);
  }
}

ConstTensorView Observation::kept(int earlier_call) const {
  const auto found = kept_outputs->find(earlier_call);
  return found == kept_outputs->end() ? ConstTensorView{} : found->second.view;
}

Executor::Executor(const Engine& engine, const Problem& problem)
    : engine_(engine),
      problem_(problem),
      memory_(engine.memory ? engine.memory : host_memory()) {}

Executor::~Executor() = default;

Status Executor::allocate() {
  own_ = std::make_unique<Tensors>();
  own_->problem = &problem_;
  own_->largest = numerics_of(engine_, problem_).largest_input(problem_.dtype);
  return own_->allocate(*memory_);
}

// The tensors of the call's problem.
Status Executor::prepare(const PlannedCall& planned, Tensors*& tensors) {
  tensors = own_.get();
  const std::shared_ptr<const Problem>& wanted = planned.mode.problem;
  if (!wanted) return ok_status();
  if (!derived_ || derived_->owned != wanted) {
    derived_ = std::make_unique<Tensors>();
    derived_->owned = wanted;
    derived_->problem = wanted.get();
    derived_->largest =
        numerics_of(engine_, *wanted).largest_input(wanted->dtype);
    if (Status status = derived_->allocate(*memory_); !status.ok()) {
      // The next call with this problem must not find half of its tensors.
      derived_.reset();
      return status;
    }
  }
  tensors = derived_.get();
  return ok_status();
}

template <typename Callback>
Status Executor::timed(Callback callback) {
  const auto start = std::chrono::steady_clock::now();
  const Status status = callback();
  engine_seconds_ +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  ++engine_calls_;
  return status;
}

// The last tokens go into the cache through the engine. The rows that the
// cache must hold afterwards are those that it was filled with.
Status Executor::append(const PlannedCall& planned, Tensors& tensors,
                        Observation& seen) {
  const Problem& problem = *tensors.problem;
  const std::int64_t count = planned.mode.append;
  std::vector<std::int64_t> lengths;
  for (std::int64_t b = 0; b < problem.batch; ++b)
    lengths.push_back(problem.len_kv(b));
  const auto new_rows = [&](Tensors::SideBuffer& buffer, std::string_view name,
                            TensorRole role) -> Status {
    Shape4 shape = problem.shape(role);
    shape[2] = count;
    if (Status status =
            tensors.allocate_side(*memory_, buffer, name, problem.dtype, shape);
        !status.ok())
      return status;
    const RowFiller filler =
        row_filler(problem, planned, role, tensors.largest);
    buffer->fill([filler, lengths, count](std::int64_t b, std::int64_t h,
                                          std::int64_t s, double* to) {
      filler(b, h, lengths[static_cast<std::size_t>(b)] - count + s, to);
    });
    return buffer->upload();
  };
  if (Status status = new_rows(tensors.new_key, "new_key", TensorRole::kKey);
      !status.ok())
    return status;
  if (Status status =
          new_rows(tensors.new_value, "new_value", TensorRole::kValue);
      !status.ok())
    return status;
  tensors.key.withhold(
      stale_filler(problem, planned, TensorRole::kKey, tensors.largest),
      lengths, count);
  if (!problem.value_in_key)
    tensors.value.withhold(
        stale_filler(problem, planned, TensorRole::kValue, tensors.largest),
        lengths, count);
  for (GuardedBuffer* buffer : tensors.buffers())
    if (Status status = buffer->upload(); !status.ok()) return status;

  const AttentionCall call = tensors.call();
  CacheAppend append;
  append.problem = &problem;
  append.num_new = count;
  append.new_key = tensors.new_key->device_view();
  append.new_value = tensors.new_value->device_view();
  append.key = tensors.key.device_view();
  append.value = tensors.device_value();
  append.cu_seqlens_kv = call.cu_seqlens_kv;
  append.block_table = call.block_table;
  append.block_table_width = call.block_table_width;
  const Status appended = timed([&] { return run_append(engine_, append); });
  const std::vector<StrayAccess> strays = memory_->take_stray_accesses();
  if (!appended.ok()) {
    tensors.add_stray_accesses(strays, {}, seen.memory_faults);
    return appended;
  }
  // Any later call fills the cache anew.
  tensors.scores_filled.clear();
  std::vector<GuardedBuffer*> cache = {&tensors.key};
  if (!problem.value_in_key) cache.push_back(&tensors.value);
  for (GuardedBuffer* buffer : cache) {
    if (Status status = buffer->download(); !status.ok()) return status;
    buffer->find_faults(seen.append_faults);
  }
  tensors.add_stray_accesses(strays, seen.append_faults, seen.memory_faults);
  return ok_status();
}

Status Executor::run(const Plan& plan, int index, Observation& seen) {
  const PlannedCall& planned = plan.calls()[static_cast<std::size_t>(index)];
  const CallMode& mode = planned.mode;
  Tensors* tensors = nullptr;
  if (Status status = prepare(planned, tensors); !status.ok()) return status;
  const Problem& problem = *tensors->problem;
  seen = Observation{};
  seen.call = index;
  seen.planned = &planned;
  seen.problem = &problem;
  tensors->fill(planned);
  tensors->output.poison();
  std::vector<GuardedBuffer*> buffers = tensors->buffers();
  const Shape4 rows = {problem.batch, problem.num_heads, problem.max_len_q(),
                       1};
  Shape4 matrix = rows;
  matrix[3] = problem.max_len_kv();
  if (mode.ask_lse)
    if (Status status =
            tensors->allocate_side(*memory_, tensors->softmax_lse,
                                   "softmax_lse", side_dtype(problem), rows);
        !status.ok())
      return status;
  if (mode.ask_weights)
    if (Status status = tensors->allocate_side(
            *memory_, tensors->weights, "weights", side_dtype(problem), matrix);
        !status.ok())
      return status;
  for (const Tensors::SideBuffer* side :
       {mode.ask_lse ? &tensors->softmax_lse : nullptr,
        mode.ask_weights ? &tensors->weights : nullptr}) {
    if (side == nullptr) continue;
    (*side)->poison();
    buffers.push_back(side->get());
  }
  if (mode.append > 0) {
    if (Status status = append(planned, *tensors, seen); !status.ok())
      return status;
  }
  for (GuardedBuffer* buffer : buffers)
    if (Status status = buffer->upload(); !status.ok()) return status;

  AttentionCall call = tensors->call();
  if (mode.ask_lse) call.softmax_lse = tensors->softmax_lse->device_view();
  if (mode.ask_weights) call.weights = tensors->weights->device_view();
  const Status ran = timed([&] { return run_engine(engine_, call); });
  const std::vector<StrayAccess> strays = memory_->take_stray_accesses();
  if (!ran.ok()) {
    tensors->add_stray_accesses(strays, {}, seen.memory_faults);
    return ran;
  }

  for (GuardedBuffer* buffer : buffers)
    if (Status status = buffer->download(); !status.ok()) return status;
  // A cache that the append damaged is no fault of the call after it.
  if (seen.append_faults.empty()) {
    for (GuardedBuffer* buffer : buffers)
      buffer->find_faults(seen.memory_faults);
    if (Status status = tensors->mask.find_fault(seen.memory_faults);
        !status.ok())
      return status;
    for (IndexArray* array : {&tensors->cu_seqlens_q, &tensors->cu_seqlens_kv,
                              &tensors->block_table})
      array->find_fault(seen.memory_faults);
  }
  tensors->add_stray_accesses(strays, {}, seen.memory_faults);
  // A damaged input is filled anew before the next call.
  if (!seen.memory_faults.empty()) tensors->scores_filled.clear();
  seen.query = tensors->query.host_view();
  seen.key = tensors->key.host_view();
  seen.value = tensors->host_value();
  seen.output = tensors->output.host_view();
  if (mode.ask_lse) seen.softmax_lse = tensors->softmax_lse->host_view();
  if (mode.ask_weights) seen.weights = tensors->weights->host_view();
  if (planned.keep_output) keep(index, *tensors);
  seen.kept_outputs = &kept_outputs_;
  return ok_status();
}

void Executor::keep(int index, Tensors& tensors) {
  KeptOutput& kept = kept_outputs_[index];
  kept.view = tensors.output.host_view();
  kept.tokens = tensors.output.placement().tokens;
  const std::size_t bytes =
      static_cast<std::size_t>(tensors.output.placement().extent) *
      dtype_size(kept.view.dtype);
  kept.bytes.assign(kept.view.data, kept.view.data + bytes);
  kept.view.data = kept.bytes.data();
}

}  // namespace attnguard
