// A part of a problem as a problem of its own: fewer tokens, fewer queries, or
// one batch entry. Its rows see the same keys as in the whole, so they must
// give the same outputs, up to the rounding of another shape.
#ifndef ATTNGUARD_GUARD_PROBE_SLICE_H_
#define ATTNGUARD_GUARD_PROBE_SLICE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "guard/probe/pattern.h"
#include "guard/problem/problem.h"

namespace attnguard {

struct Slice {
  std::string name;  // "the last token alone"
  std::shared_ptr<const Problem> problem;
  std::int64_t entry = -1;                // Of the whole; -1: every entry.
  std::vector<std::int64_t> first_query;  // of each entry of the slice

  std::int64_t whole_batch(std::int64_t b) const {
    return entry < 0 ? b : entry;
  }
};

// Queries [len_q - drop - count, len_q - drop) of every entry, with the keys
// up to the last `drop`; count < 0: all that are left. nullptr when an entry
// is too short, or when the rows would not see the same keys.
std::shared_ptr<const Slice> slice_tokens(const Problem& whole,
                                          std::string name, std::int64_t drop,
                                          std::int64_t count);

// One batch entry alone.
std::shared_ptr<const Slice> slice_entry(const Problem& whole,
                                         std::int64_t entry);

// What the whole's patterns put into the slice.
ScorePatternPtr sliced_scores(const Problem& whole,
                              std::shared_ptr<const Slice> slice,
                              ScorePatternPtr scores);
ValuePatternPtr sliced_values(const Problem& whole,
                              std::shared_ptr<const Slice> slice,
                              ValuePatternPtr values);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_PROBE_SLICE_H_
