// The worker's half of a call: from a request back to an AttentionCall.
#ifndef ATTNGUARD_CI_ISOLATE_SERVED_CALL_H_
#define ATTNGUARD_CI_ISOLATE_SERVED_CALL_H_

#include <map>
#include <memory>
#include <vector>

#include "ci/isolate/messages.h"
#include "ci/isolate/tripwire.h"
#include "guard/engine/engine.h"

namespace attnguard {

class ServedCalls {
 public:
  // `engine` must outlive this.
  explicit ServedCalls(const Engine& engine) : engine_(engine) {}
  ~ServedCalls();
  ServedCalls(const ServedCalls&) = delete;
  ServedCalls& operator=(const ServedCalls&) = delete;

  // The request's problem, when it brings one. kInvalidArgument when the text
  // is none, or when the number was never given.
  Status remember(const Request& request);
  const Problem& problem(const Request& request) const;

  // Runs the call or append. What the engine throws goes through.
  Status serve(const Request& request, const Tripwire& memory);

 private:
  struct Known {
    Problem problem;
    // Of each TensorRole; nullptr for padded tensors.
    std::shared_ptr<const TokenMap> tokens[4];
  };

  // A block in the engine's own memory, margins included.
  struct Staged {
    SharedBlock block;
    void* data = nullptr;
  };

  ConstTensorView view(const SharedView& from, const Request& request,
                       TensorRole role, const Tripwire& memory) const;
  TensorView writable(const SharedView& from, const Request& request,
                      TensorRole role, const Tripwire& memory) const;
  std::byte* address(std::int64_t offset, const Tripwire& memory) const;
  Status run(const Request& request, const Tripwire& memory);

  // For engines with memory of their own, which is filled before the call and
  // read back after it.
  Status stage(const Request& request, const Tripwire& memory);
  Status unstage(const Tripwire& memory);
  void release_staged();

  const Engine& engine_;
  std::map<std::int64_t, std::unique_ptr<Known>> known_;
  std::vector<Staged> staged_;
};

}  // namespace attnguard

#endif  // ATTNGUARD_CI_ISOLATE_SERVED_CALL_H_
