// The worker's view of the shared memory: all of it is out of bounds but the
// tensors of the call at hand. What touches the margin of a tensor is written
// down and goes on, as it would have without us, so that the call ends and all
// that is wrong with it is found; what touches anything else is written down
// and dies.
#ifndef ATTNGUARD_CI_ISOLATE_TRIPWIRE_H_
#define ATTNGUARD_CI_ISOLATE_TRIPWIRE_H_

#include <cstddef>
#include <vector>

#include "ci/isolate/shared_memory.h"
#include "guard/base/status.h"

namespace attnguard {

// One per process: signal handlers have no other way to find it.
class Tripwire {
 public:
  // Maps the shared memory of the descriptor and catches the signals of bad
  // accesses and the exceptions that nobody catches.
  static Result<Tripwire*> set_up(int memory_fd);

  std::byte* at(std::int64_t offset) const;

  // Opens the blocks of a call and closes all others. Takes the signals again,
  // should the engine have taken them. At most kMostRanges blocks.
  Status expose(const std::vector<SharedBlock>& ranges);

  // For blocks that the worker copies, and no engine touches.
  void open_margins(const SharedBlock& block) const;

  // Closes margins that an engine opened.
  void rearm();

  static constexpr std::size_t kMostRanges = 16;

 private:
  Tripwire() = default;

  std::vector<SharedBlock> open_;
};

}  // namespace attnguard

#endif  // ATTNGUARD_CI_ISOLATE_TRIPWIRE_H_
