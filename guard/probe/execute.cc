#include "guard/probe/execute.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <new>

namespace attnguard {
namespace {

// Bytes around every tensor that the engine does not own. A multiple of every
// alignment kernels ask for; wide enough for a runaway vector store.
constexpr std::size_t kGuardBytes = 4096;
constexpr std::byte kGuardByte{0xa5};
constexpr std::size_t kMostFaultsPerTensor = 4;

// Below this many elements waking the other threads costs more than it saves.
constexpr std::int64_t kParallelElements = 1 << 16;

// One tensor in the engine's memory, with guard bytes on both sides, and what
// those bytes must still be after a call.
class GuardedBuffer {
 public:
  GuardedBuffer() = default;
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;
  ~GuardedBuffer() {
    if (device_ != nullptr) memory_->release(device_);
  }

  bool allocate(Memory& memory, const Problem& problem, TensorRole role) {
    memory_ = &memory;
    role_ = role;
    dtype_ = problem.dtype_of(role);
    shape_ = problem.shape(role);
    strides_ = problem.strides(role);
    tensor_bytes_ =
        static_cast<std::size_t>(problem.extent(role)) * dtype_size(dtype_);
    // The first element stays aligned to 64 bytes.
    const std::size_t total = tensor_bytes_ + 2 * kGuardBytes;
    device_ = static_cast<std::byte*>(memory.allocate(total));
    if (device_ == nullptr) return false;
    try {
      expected_.assign(total, kGuardByte);
      if (!memory.host_accessible()) staging_.assign(total, kGuardByte);
    } catch (const std::bad_alloc&) {
      return false;
    }
    std::memcpy(host(), expected_.data(), total);
    return true;
  }

  std::size_t total_bytes() const { return expected_.size(); }
  std::byte* host() {
    return memory_->host_accessible() ? device_ : staging_.data();
  }
  TensorView host_view() {
    return {host() + kGuardBytes, dtype_, shape_, strides_};
  }
  TensorView device_view() {
    return {device_ + kGuardBytes, dtype_, shape_, strides_};
  }

  // Guard bytes and gaps as they were at first; the tensor is to be filled.
  void reset() {
    std::memset(host(), static_cast<int>(kGuardByte), total_bytes());
  }

  // For the output: every element, the gaps too, is the poison NaN.
  void poison() {
    if (!poisoned_) {
      fill_poison(
          dtype_, expected_.data() + kGuardBytes,
          static_cast<std::int64_t>(tensor_bytes_ / dtype_size(dtype_)));
      poisoned_ = true;
    }
    std::memcpy(host(), expected_.data(), total_bytes());
  }

  // What is in the buffer now is what must still be there after the call.
  void remember() { std::memcpy(expected_.data(), host(), total_bytes()); }

  Status upload() {
    if (memory_->host_accessible()) return ok_status();
    return memory_->copy_in(device_, host(), total_bytes());
  }
  Status download() {
    if (memory_->host_accessible()) return ok_status();
    return memory_->copy_out(host(), device_, total_bytes());
  }

  // Bytes that changed although the engine must not change them.
  void find_faults(std::vector<MemoryFault>& faults) {
    if (role_ != TensorRole::kOutput &&
        std::memcmp(host(), expected_.data(), total_bytes()) == 0)
      return;
    const std::size_t first = faults.size();
    const std::size_t tensor_end = kGuardBytes + tensor_bytes_;
    scan(0, kGuardBytes, MemoryFault::Place::kBefore, first, faults);
    if (role_ != TensorRole::kOutput)
      scan(kGuardBytes, tensor_end, MemoryFault::Place::kInput, first, faults);
    else if (has_gaps())
      scan_gaps(first, faults);
    scan(tensor_end, total_bytes(), MemoryFault::Place::kAfter, first, faults);
  }

 private:
  bool has_gaps() const {
    std::size_t elements = dtype_size(dtype_);
    for (std::int64_t size : shape_) elements *= static_cast<std::size_t>(size);
    return elements != tensor_bytes_;
  }

  void add_fault(std::size_t byte, MemoryFault::Place place, std::size_t first,
                 std::vector<MemoryFault>& faults) {
    if (faults.size() - first >= kMostFaultsPerTensor) return;
    const auto offset = static_cast<std::int64_t>(byte) -
                        static_cast<std::int64_t>(kGuardBytes);
    const auto size = static_cast<std::int64_t>(dtype_size(dtype_));
    const std::int64_t element =
        offset >= 0 ? offset / size : -((-offset + size - 1) / size);
    if (faults.size() > first && faults.back().place == place &&
        faults.back().element == element)
      return;
    faults.push_back({role_, place, element});
  }

  void scan(std::size_t begin, std::size_t end, MemoryFault::Place place,
            std::size_t first, std::vector<MemoryFault>& faults) {
    const std::byte* now = host();
    if (std::memcmp(now + begin, expected_.data() + begin, end - begin) == 0)
      return;
    for (std::size_t i = begin; i < end; ++i)
      if (now[i] != expected_[i]) add_fault(i, place, first, faults);
  }

  // Elements inside the output's extent that no logical element lies on.
  void scan_gaps(std::size_t first, std::vector<MemoryFault>& faults) {
    const std::size_t size = dtype_size(dtype_);
    std::vector<bool> owned(tensor_bytes_ / size, false);
    const TensorView view = host_view();
    for (std::int64_t b = 0; b < shape_[0]; ++b)
      for (std::int64_t h = 0; h < shape_[1]; ++h)
        for (std::int64_t s = 0; s < shape_[2]; ++s)
          for (std::int64_t c = 0; c < shape_[3]; ++c)
            owned[static_cast<std::size_t>(view.offset(b, h, s, c))] = true;
    for (std::size_t i = 0; i < owned.size(); ++i) {
      const std::size_t byte = kGuardBytes + i * size;
      if (!owned[i] &&
          std::memcmp(host() + byte, expected_.data() + byte, size) != 0)
        add_fault(byte, MemoryFault::Place::kGap, first, faults);
    }
  }

  Memory* memory_ = nullptr;
  TensorRole role_ = TensorRole::kQuery;
  Dtype dtype_ = Dtype::kFp32;
  Shape4 shape_{}, strides_{};
  std::size_t tensor_bytes_ = 0;
  bool poisoned_ = false;
  std::byte* device_ = nullptr;
  std::vector<std::byte> staging_;   // Only when the host cannot reach it.
  std::vector<std::byte> expected_;  // Guards, and contents when remembered.
};

std::int64_t elements_of(const TensorView& view) {
  return view.shape[0] * view.shape[1] * view.shape[2] * view.shape[3];
}

void fill_scores(const Problem& problem, const ScorePattern& scores,
                 const TensorView& query, const TensorView& key) {
  const std::int64_t channels = problem.head_dim_qk;
#pragma omp parallel for collapse(2) schedule( \
    static) if (elements_of(query) + elements_of(key) > kParallelElements)
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t h = 0; h < problem.num_heads; ++h) {
      std::vector<double> row(static_cast<std::size_t>(channels));
      for (std::int64_t i = 0; i < query.shape[2]; ++i) {
        scores.query_row(b, h, i, row.data());
        query.store_row(b, h, i, 0, channels, row.data());
      }
      if (h >= problem.num_kv_heads) continue;
      for (std::int64_t j = 0; j < key.shape[2]; ++j) {
        scores.key_row(b, h, j, row.data());
        key.store_row(b, h, j, 0, channels, row.data());
      }
    }
  }
}

void fill_values(const Problem& problem, const std::vector<ValueBlock>& blocks,
                 const TensorView& value) {
  const std::int64_t channels = problem.head_dim_v;
#pragma omp parallel for collapse(2) \
    schedule(static) if (elements_of(value) > kParallelElements)
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t g = 0; g < problem.num_kv_heads; ++g) {
      std::vector<double> row(static_cast<std::size_t>(channels), 0.0);
      for (std::int64_t j = 0; j < value.shape[2]; ++j) {
        for (const ValueBlock& block : blocks)
          block.values->value_row(b, g, j, row.data() + block.first_column);
        value.store_row(b, g, j, 0, channels, row.data());
      }
    }
  }
}

}  // namespace

struct Executor::Buffers {
  GuardedBuffer query, key, value, output;
  std::string scores_filled;  // Name of what q and k hold; empty: nothing.
  bool damaged = false;       // The last call changed what it must not.

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

Status Executor::run(const Plan& plan, int index, Observation& seen) {
  const PlannedCall& planned = plan.calls()[static_cast<std::size_t>(index)];
  Buffers& buffers = *buffers_;
  if (buffers.damaged) {
    buffers.query.reset();
    buffers.key.reset();
    buffers.value.reset();
    buffers.scores_filled.clear();
    buffers.damaged = false;
  }
  if (buffers.scores_filled != planned.scores->name()) {
    fill_scores(problem_, *planned.scores, buffers.query.host_view(),
                buffers.key.host_view());
    buffers.query.remember();
    buffers.key.remember();
    buffers.scores_filled = planned.scores->name();
  }
  fill_values(problem_, planned.blocks, buffers.value.host_view());
  buffers.value.remember();
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
  buffers.damaged = !seen.memory_faults.empty();
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
