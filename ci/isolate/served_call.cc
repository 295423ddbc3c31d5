#include "ci/isolate/served_call.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace attnguard {
namespace {

const std::int32_t* indices(std::int64_t offset, const Tripwire& memory) {
  if (offset < 0) return nullptr;
  return reinterpret_cast<const std::int32_t*>(memory.at(offset));
}

// What the engine's own memory gets: the tensor and its margins.
std::int64_t first_byte(const SharedBlock& block) {
  return block.tensor - block.margin;
}
std::size_t num_bytes(const SharedBlock& block) {
  return static_cast<std::size_t>(block.size + 2 * block.margin);
}

// What the guard calls the tensor that lies in the block.
std::string_view name_in_block(const Request& request,
                               const SharedBlock& block) {
  const std::pair<std::string_view, std::int64_t> tensors[] = {
      {"query", request.query.offset},
      {"key", request.key.offset},
      {"value", request.value.offset},
      {"output", request.output.offset},
      {"softmax_lse", request.softmax_lse.offset},
      {"weights", request.weights.offset},
      {"new_key", request.new_key.offset},
      {"new_value", request.new_value.offset},
      {"mask", request.mask}};
  for (const auto& [name, offset] : tensors)
    if (offset == block.tensor) return name;
  return "call's";
}

}  // namespace

ServedCalls::~ServedCalls() { release_staged(); }

Status ServedCalls::remember(const Request& request) {
  if (request.problem_text.empty()) {
    if (known_.count(request.problem) > 0) return ok_status();
    return invalid_argument("the engine's process does not know the problem");
  }
  Result<Problem> problem = Problem::parse(request.problem_text);
  if (!problem.ok()) return problem.status();
  auto known = std::make_unique<Known>();
  known->problem = std::move(problem.value());
  for (TensorRole role : {TensorRole::kQuery, TensorRole::kKey,
                          TensorRole::kValue, TensorRole::kOutput})
    known->tokens[static_cast<int>(role)] =
        place_tensor(known->problem, role).tokens;
  known_[request.problem] = std::move(known);
  return ok_status();
}

const Problem& ServedCalls::problem(const Request& request) const {
  return known_.at(request.problem)->problem;
}

std::byte* ServedCalls::address(std::int64_t offset,
                                const Tripwire& memory) const {
  if (offset < 0) return nullptr;
  for (const Staged& staged : staged_)
    if (offset >= staged.block.begin && offset <= staged.block.end)
      return static_cast<std::byte*>(staged.data) + offset -
             first_byte(staged.block);
  return memory.at(offset);
}

TensorView ServedCalls::writable(const SharedView& from, const Request& request,
                                 TensorRole role,
                                 const Tripwire& memory) const {
  if (from.offset < 0) return {};
  TensorView view;
  view.data = address(from.offset, memory);
  view.dtype = from.dtype;
  view.shape = from.shape;
  view.strides = from.strides;
  if (from.has_tokens)
    view.tokens =
        known_.at(request.problem)->tokens[static_cast<int>(role)].get();
  return view;
}

ConstTensorView ServedCalls::view(const SharedView& from,
                                  const Request& request, TensorRole role,
                                  const Tripwire& memory) const {
  return writable(from, request, role, memory);
}

Status ServedCalls::run(const Request& request, const Tripwire& memory) {
  if (request.ask == Ask::kAppend) {
    CacheAppend append;
    append.problem = &problem(request);
    append.num_new = request.num_new;
    append.new_key = view(request.new_key, request, TensorRole::kKey, memory);
    append.new_value =
        view(request.new_value, request, TensorRole::kValue, memory);
    append.key = writable(request.key, request, TensorRole::kKey, memory);
    append.value = writable(request.value, request, TensorRole::kValue, memory);
    append.cu_seqlens_kv = indices(request.cu_seqlens_kv, memory);
    append.block_table = indices(request.block_table, memory);
    append.block_table_width = request.block_table_width;
    return engine_.append(append);
  }
  AttentionCall call;
  call.problem = &problem(request);
  call.query = view(request.query, request, TensorRole::kQuery, memory);
  call.key = view(request.key, request, TensorRole::kKey, memory);
  call.value = view(request.value, request, TensorRole::kValue, memory);
  call.output = writable(request.output, request, TensorRole::kOutput, memory);
  call.mask = {request.mask_form, address(request.mask, memory)};
  call.cu_seqlens_q = indices(request.cu_seqlens_q, memory);
  call.cu_seqlens_kv = indices(request.cu_seqlens_kv, memory);
  call.block_table = indices(request.block_table, memory);
  call.block_table_width = request.block_table_width;
  call.softmax_lse =
      writable(request.softmax_lse, request, TensorRole::kOutput, memory);
  call.weights =
      writable(request.weights, request, TensorRole::kOutput, memory);
  return engine_.run(call);
}

Status ServedCalls::serve(const Request& request, const Tripwire& memory) {
  if (request.ask == Ask::kRun ? !engine_.run : !engine_.append)
    return {StatusCode::kEngineFailure, request.ask == Ask::kRun
                                            ? "it has no callback"
                                            : "it has no append callback"};
  if (!engine_.memory) return run(request, memory);
  if (Status status = stage(request, memory); !status.ok()) return status;
  if (Status status = run(request, memory); !status.ok()) return status;
  return unstage(memory);
}

// Index arrays stay in host memory.
Status ServedCalls::stage(const Request& request, const Tripwire& memory) {
  std::vector<SharedBlock> wanted = request.ranges;
  std::erase_if(wanted, [&](const SharedBlock& block) {
    return block.tensor == request.cu_seqlens_q ||
           block.tensor == request.cu_seqlens_kv ||
           block.tensor == request.block_table;
  });
  const bool has_all =
      wanted.size() == staged_.size() &&
      std::equal(wanted.begin(), wanted.end(), staged_.begin(),
                 [](const SharedBlock& block, const Staged& staged) {
                   return block == staged.block;
                 });
  if (!has_all) {
    release_staged();
    for (const SharedBlock& block : wanted) {
      const Result<void*> data =
          allocate_tensor(*engine_.memory, name_in_block(request, block),
                          static_cast<std::size_t>(block.size),
                          static_cast<std::size_t>(block.margin));
      if (!data.ok()) {
        release_staged();
        return data.status();
      }
      staged_.push_back({block, data.value()});
    }
  }
  for (const Staged& staged : staged_) {
    memory.open_margins(staged.block);
    if (Status status = engine_.memory->copy_in(
            staged.data, memory.at(first_byte(staged.block)),
            num_bytes(staged.block));
        !status.ok())
      return status;
  }
  return ok_status();
}

Status ServedCalls::unstage(const Tripwire& memory) {
  for (const Staged& staged : staged_)
    if (Status status =
            engine_.memory->copy_out(memory.at(first_byte(staged.block)),
                                     staged.data, num_bytes(staged.block));
        !status.ok())
      return status;
  return ok_status();
}

void ServedCalls::release_staged() {
  for (const Staged& staged : staged_) engine_.memory->release(staged.data);
  staged_.clear();
}

}  // namespace attnguard
