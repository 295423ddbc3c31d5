// The live guard inside LibTorch: every scaled dot product attention of the
// process is seen through LibTorch's record-function callback, with no change
// to the model, and a sampled few are handed to a Guard.
//
//   auto hook = LiveHook::start(*guard);     // before the model runs
//   ...
//   hook.value().reset();                    // when it does not run any more
//
// The callback gets what the call was given: query, key, value, mask, flag and
// scale. A wrong mask or a stale page is an input, and looks right from inside
// the call; a host that says which mask its calls owe has masks checked too.
//
// Tensors must lie in host memory. Calls with dropout, a bias or a mask for
// each head are counted and not judged.
#ifndef ATTNGUARD_ADAPTERS_LIBTORCH_LIVE_HOOK_H_
#define ATTNGUARD_ADAPTERS_LIBTORCH_LIVE_HOOK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "guard/base/status.h"
#include "guard/problem/mask/mask.h"
#include "guard/runtime/guard.h"

namespace attnguard::libtorch {

struct LiveHookOptions {
  // The module of attnguard that includes LibTorch; empty: where the build or
  // the installation put it.
  std::string module;

  // How often LibTorch calls back. The callback costs a little in every
  // operator, not only in attention: a probability below 1 saves that, and the
  // guard then samples among what is left.
  double probability = 1;

  // Attention calls are layers "sdpa.0", "sdpa.1" ... in turn, so many of them;
  // for threads that run whole models. 0: all are the one layer "sdpa".
  int layers = 0;

  // What every call owes. Absent: what the call itself was told.
  std::optional<Mask> mask;
  std::optional<double> softmax_scale;

  // Called too when the hook's own checks find something, in words: layer,
  // check ("mask" or "weights") and message. From the thread that called. They
  // are reported to the guard (Guard::report) in any case, and so are counted,
  // logged and dumped as the policy says of its check `engine`. Where `engine`
  // is off for a layer, the hook's checks are not made in it. Violations do not
  // throw here, whatever the policy says: LibTorch swallows what its callbacks
  // throw.
  std::function<void(const std::string& layer, const std::string& check,
                     const std::string& message)>
      on_finding;
};

struct HookCounters {
  std::uint64_t attention = 0;  // Calls that LibTorch told of.
  std::uint64_t sampled = 0;    // Looked at.
  std::uint64_t observed = 0;   // Handed to the guard.
  std::uint64_t declined = 0;   // Not judged; last_reason says why.
  std::string last_reason;

  struct Check {
    std::uint64_t runs = 0;
    std::uint64_t judged = 0;      // mask elements, rows of weights
    std::uint64_t violations = 0;  // Runs that found something.
  };
  Check mask, weights;
};

class LiveHook {
 public:
  // The guard must outlive the hook. One at a time in a process: a second one
  // is kUnsupported. kNotFound: there is no module.
  static Result<std::unique_ptr<LiveHook>> start(Guard& guard,
                                                 LiveHookOptions options = {});

  // No attention may run meanwhile.
  ~LiveHook();
  LiveHook(const LiveHook&) = delete;
  LiveHook& operator=(const LiveHook&) = delete;

  HookCounters counters() const;

 private:
  class State;
  explicit LiveHook(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace attnguard::libtorch

#endif  // ATTNGUARD_ADAPTERS_LIBTORCH_LIVE_HOOK_H_
