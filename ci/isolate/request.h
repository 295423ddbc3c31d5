// The parent's half of a call: from an AttentionCall to a request, and from
// what the other process wrote down to stray accesses.
#ifndef ATTNGUARD_CI_ISOLATE_REQUEST_H_
#define ATTNGUARD_CI_ISOLATE_REQUEST_H_

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ci/isolate/messages.h"
#include "ci/isolate/shared_memory.h"
#include "guard/engine/engine.h"

namespace attnguard {

// The index arrays of a call are the caller's; the other process gets copies,
// between guard pages as tensors are.
class SharedArrays {
 public:
  explicit SharedArrays(SharedMemory& memory) : memory_(memory) {}
  ~SharedArrays();
  SharedArrays(const SharedArrays&) = delete;
  SharedArrays& operator=(const SharedArrays&) = delete;

  enum Which { kCuSeqlensQ, kCuSeqlensKv, kBlockTable, kCount };

  // Copies the array; nullptr when it is absent. The memory's status when it
  // gives none.
  Result<const std::int32_t*> share(Which which, const std::int32_t* array,
                                    std::int64_t count);

  // What the engine changed in a copy is changed in the array, too: the guard
  // compares that.
  void take_back();

  // The array that an address of a copy stands for, or the address itself.
  const void* original_of(const void* address) const;

 private:
  struct Array {
    const std::int32_t* original = nullptr;
    std::int32_t* copy = nullptr;
    std::size_t bytes = 0;
    void* block = nullptr;
  };

  SharedMemory& memory_;
  std::array<Array, kCount> arrays_;
};

class RequestBuilder {
 public:
  RequestBuilder(SharedMemory& memory, SharedArrays& arrays)
      : memory_(memory), arrays_(arrays) {}

  // kInvalidArgument when a tensor does not lie in the engine's memory.
  Result<Request> build(const AttentionCall& call);
  Result<Request> build(const CacheAppend& append);

  // Notes in the memory what the other process wrote down.
  void take_accesses() const;

 private:
  std::int64_t place(std::string_view name, const void* data);
  SharedView share(std::string_view name, const ConstTensorView& view);
  std::int64_t share(SharedArrays::Which which, const std::int32_t* array,
                     std::int64_t count);
  Result<Request> finished();

  SharedMemory& memory_;
  SharedArrays& arrays_;
  Request request_;
  Status status_;
  std::vector<SharedBlock> ranges_;
};

}  // namespace attnguard

#endif  // ATTNGUARD_CI_ISOLATE_REQUEST_H_
