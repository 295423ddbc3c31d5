// A worker whose engines fail in every way that a process can. The engine's
// specification says which on what length of queries, and all else is right:
//
//   fault:engine,7=crash,9=hang       fault:engine,open=exit
//
// fault:device has memory of its own and takes tensors there alone; with
// memory=ends there is none, and with memory=null it says that there is.
#include <omp.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "adapters/adapter.h"
#include "ci/isolate/worker.h"
#include "guard/engine/attention_variant.h"
#include "guard/engine/engine.h"
#include "guard/probe/guarded_buffer.h"

namespace attnguard {
namespace {

std::int64_t bytes_of(const AttentionCall& call, TensorRole role) {
  return call.problem->extent(role) *
         static_cast<std::int64_t>(dtype_size(call.problem->dtype_of(role)));
}

// Nothing that the compiler may leave out.
void read_byte(const std::byte* at) {
  if (*static_cast<const volatile std::byte*>(at) == std::byte{1}) return;
}
void write_byte(std::byte* at) {
  *static_cast<volatile std::byte*>(at) = std::byte{1};
}

[[noreturn]] void hang() {
  for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
}

// A bad_alloc cannot leave an OpenMP region: the process ends.
void allocate_without_end() {
#pragma omp parallel num_threads(2)
  {
    std::size_t size = std::size_t{1} << 40;
    for (; size != 0; size *= 2) {
      void* volatile held = ::operator new(size);
      if (held == nullptr) std::abort();
    }
  }
}

int recurse(std::uint64_t depth) {
  volatile char frame[4096];
  frame[0] = static_cast<char>(depth);
  return depth == 0 ? 0 : recurse(depth + 1) + frame[0];
}

// An engine that writes to whatever descriptors there are.
void write_garbage() {
  for (int fd = 3; fd < 1024; ++fd) {
    int type = 0;
    socklen_t size = sizeof(type);
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
        write(fd, "this is no answer", 17) < 0)
      std::abort();
  }
}

void close_everything() {
  for (int fd = 3; fd < 1024; ++fd) close(fd);
}

void leave_a_child_behind() {
  if (fork() == 0) hang();
  std::abort();
}

void crash() { write_byte(reinterpret_cast<std::byte*>(0x10)); }

// What it does before it computes the right output.
void misbehave(const std::string& how, const AttentionCall& call) {
  std::byte* out = call.output.data;
  const std::byte* key = call.key.data;
  const std::byte* mask = call.mask.data;
  const std::int64_t out_end = bytes_of(call, TensorRole::kOutput);
  const std::int64_t key_end = bytes_of(call, TensorRole::kKey);
  static const std::byte* kept = nullptr;
  if (kept == nullptr) kept = key;
  if (how == "crash") return crash();
  if (how == "hang") hang();
  if (how == "exit") std::exit(7);
  if (how == "abort") std::abort();
  if (how == "kill") raise(SIGKILL);
  if (how == "signal") raise(SIGUSR1);
  if (how == "throw") throw std::runtime_error("thrown on purpose");
  if (how == "memory") return allocate_without_end();
  if (how == "stack") recurse(1);
  if (how == "garbage") return write_garbage();
  if (how == "close") return close_everything();
  if (how == "child") return leave_a_child_behind();
  if (how == "threads")
    throw std::runtime_error(std::to_string(omp_get_max_threads()) +
                             " threads");
  if (how == "print") std::puts("the engine prints");
  if (how == "write-past") return write_byte(out + out_end);
  if (how == "write-far") return write_byte(out + out_end + 20000);
  if (how == "read-past") return read_byte(key + key_end);
  if (how == "read-before") return read_byte(key - 4096);
  if (how == "read-mask") return read_byte(mask + 4096);
  if (how == "read-table")
    return read_byte(reinterpret_cast<const std::byte*>(
        call.block_table + call.problem->batch * call.block_table_width));
  if (how == "read-kept") return read_byte(kept);
  if (how == "write-table") ++const_cast<std::int32_t*>(call.block_table)[0];
}

// Memory that the host must not touch: it says so, and knows its blocks.
class DeviceMemory final : public Memory {
 public:
  explicit DeviceMemory(std::string fault) : fault_(std::move(fault)) {}

  Result<void*> allocate(std::size_t size) override {
    if (fault_ == "ends")
      return Status(StatusCode::kOutOfMemory,
                    "the pretend device has 3 MiB left");
    if (fault_ == "null") return nullptr;
    Result<void*> data = host_memory()->allocate(size);
    if (data.ok()) blocks_[static_cast<std::byte*>(data.value())] = size;
    return data;
  }
  void release(void* data) override {
    blocks_.erase(static_cast<std::byte*>(data));
    host_memory()->release(data);
  }
  Status copy_in(void* to, const void* from, std::size_t size) override {
    return copy(to, from, size, to);
  }
  Status copy_out(void* to, const void* from, std::size_t size) override {
    return copy(to, from, size, from);
  }
  bool host_accessible() const override { return false; }

  bool holds(const void* data, std::size_t size) const {
    const auto* byte = static_cast<const std::byte*>(data);
    for (const auto& [block, bytes] : blocks_)
      if (byte >= block && byte + size <= block + bytes) return true;
    return false;
  }

 private:
  Status copy(void* to, const void* from, std::size_t size,
              const void* device) {
    if (!holds(device, size)) return invalid_argument("not device memory");
    std::memcpy(to, from, size);
    return ok_status();
  }

  std::string fault_;
  std::map<std::byte*, std::size_t> blocks_;
};

void give_own_memory(Engine& engine, const std::string& fault) {
  const auto memory = std::make_shared<DeviceMemory>(fault);
  engine.memory = memory;
  engine.run = [run = engine.run, memory](const AttentionCall& call) {
    const std::byte* mask = call.mask.data;
    for (const std::byte* data :
         {call.query.data, call.key.data, call.value.data,
          static_cast<const std::byte*>(call.output.data)})
      if (!memory->holds(data, 1))
        return invalid_argument("a tensor is not in device memory");
    const auto output_bytes =
        static_cast<std::size_t>(bytes_of(call, TensorRole::kOutput));
    if (!memory->holds(call.output.data, output_bytes + kGuardBytes))
      return invalid_argument("the margin behind the output is cut short");
    if (mask != nullptr && !memory->holds(mask, 1))
      return invalid_argument("the mask is not in device memory");
    return run(call);
  };
}

Result<Engine> open(const std::string& text) {
  std::string adapter;
  const Result<EngineSpec> spec = parse_engine_spec(text, adapter);
  if (!spec.ok()) return spec.status();
  if (adapter != "fault")
    return invalid_argument("unknown adapter '" + adapter + "'");
  std::map<std::string, std::string> faults = spec.value().options;
  if (faults["open"] == "crash") crash();
  if (faults["open"] == "exit") std::exit(9);
  if (faults["open"] == "hang") hang();
  if (faults["open"] == "missing")
    return Status(StatusCode::kNotFound, "the library is not here");
  Engine engine = variant_engine(text, "fails on purpose", {});
  if (faults["query"] == "crash")
    engine.capabilities.unsupported = [](const Problem& problem) {
      if (problem.seq_len_q[0] == 7) crash();
      return std::string();
    };
  if (spec.value().engine == "device")
    give_own_memory(engine, faults["memory"]);
  engine.run = [run = engine.run, faults](const AttentionCall& call) {
    const auto fault = faults.find(std::to_string(call.problem->len_q(0)));
    if (fault != faults.end()) misbehave(fault->second, call);
    return run(call);
  };
  return engine;
}

}  // namespace
}  // namespace attnguard

int main(int argc, char** argv) {
  if (!attnguard::is_worker(argc, argv)) return 2;
  return attnguard::run_worker(argc, argv, attnguard::open);
}
