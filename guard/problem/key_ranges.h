// The set of keys a query row may attend to: sorted, disjoint, half-open
// intervals of kv_index. Every mask kind produces one per row, so that a
// probe can ask for the first and last allowed key, count them, or sum over
// them without visiting each.
#ifndef ATTNGUARD_GUARD_PROBLEM_KEY_RANGES_H_
#define ATTNGUARD_GUARD_PROBLEM_KEY_RANGES_H_

#include <cstdint>
#include <vector>

namespace attnguard {

struct KeyRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;  // one past the last key

  friend bool operator==(const KeyRange&, const KeyRange&) = default;
};

class KeyRanges {
 public:
  void clear() { ranges_.clear(); }

  // Adds [begin, end). Calls must come in rising order; an interval that
  // touches or overlaps the last one extends it, an empty one is ignored.
  void append(std::int64_t begin, std::int64_t end);

  bool empty() const { return ranges_.empty(); }
  const std::vector<KeyRange>& ranges() const { return ranges_; }
  std::int64_t first() const { return ranges_.front().begin; }
  std::int64_t last() const { return ranges_.back().end - 1; }
  std::int64_t count() const;
  bool contains(std::int64_t key) const;

  // The n-th allowed key, 0 <= n < count().
  std::int64_t nth(std::int64_t n) const;

  friend bool operator==(const KeyRanges&, const KeyRanges&) = default;

 private:
  std::vector<KeyRange> ranges_;
};

// out = a AND b, out = a OR b. `out` must be neither of the inputs.
void intersect(const KeyRanges& a, const KeyRanges& b, KeyRanges& out);
void unite(const KeyRanges& a, const KeyRanges& b, KeyRanges& out);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_PROBLEM_KEY_RANGES_H_
