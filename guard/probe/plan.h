// The calls that a problem gets. Checks ask for what they want to see; the
// plan merges requests with the same scores into one call.
#ifndef ATTNGUARD_GUARD_PROBE_PLAN_H_
#define ATTNGUARD_GUARD_PROBE_PLAN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "guard/probe/pattern.h"
#include "guard/problem/problem.h"

namespace attnguard {

// Where a check finds what it asked for.
struct Ticket {
  int call = -1;
  std::int64_t first_column = 0;
};

struct ValueBlock {
  ValuePatternPtr values;
  std::int64_t first_column = 0;
};

// What the places hold that no row may read: slots past an entry's length,
// blocks that no sequence refers to.
enum class UnusedFill {
  kStale,  // What a token that once lay there would have left.
  kLarge,  // Large finite numbers.
  kNan,
};

// How a call differs from the usual one of its inputs. Calls of different
// modes are never shared.
struct CallMode {
  int repeat = 0;  // 0, or a further run of the same inputs.
  UnusedFill unused = UnusedFill::kStale;
  bool ask_lse = false;      // Only of engines that have the feature.
  bool ask_weights = false;  // "

  // The last so many tokens of every entry are not in the cache yet: the
  // engine appends them before it attends.
  std::int64_t append = 0;

  // Another problem than the plan's: a part of it, or one with a field
  // changed. nullptr: the plan's own. Patterns must fit its shape.
  std::shared_ptr<const Problem> problem;

  friend bool operator==(const CallMode&, const CallMode&) = default;
};

struct PlannedCall {
  ScorePatternPtr scores;
  std::vector<ValueBlock> blocks;  // Columns in no block are zero.
  std::int64_t used_columns = 0;
  CallMode mode;
  bool keep_output = false;  // Kept until the problem is finished.

  std::string name() const;  // "ladder-up: ones, address"
};

class Plan {
 public:
  explicit Plan(std::int64_t head_dim_v) : head_dim_v_(head_dim_v) {}

  std::int64_t head_dim_v() const { return head_dim_v_; }

  // A call with these scores that holds these columns. Shares an existing
  // call of the same mode when the columns are there or still fit.
  // values->columns() must be at most head_dim_v.
  Ticket request(const ScorePatternPtr& scores, const ValuePatternPtr& values,
                 const CallMode& mode = {});

  // Adds the columns to every call on the plan's own problem that has room and
  // does not hold them; returns a ticket for each call that now does.
  std::vector<Ticket> request_in_every_call(const ValuePatternPtr& values);

  // Keeps the call's output, so that a later one can be compared with it.
  void keep_output(const Ticket& ticket) {
    calls_[static_cast<std::size_t>(ticket.call)].keep_output = true;
  }

  const std::vector<PlannedCall>& calls() const { return calls_; }

 private:
  std::int64_t head_dim_v_;
  std::vector<PlannedCall> calls_;
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_PROBE_PLAN_H_
