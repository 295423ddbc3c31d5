#include "guard/problem/key_ranges.h"

#include <algorithm>

namespace attnguard {

void KeyRanges::append(std::int64_t begin, std::int64_t end) {
  if (begin >= end) return;
  if (!ranges_.empty() && begin <= ranges_.back().end) {
    ranges_.back().end = std::max(ranges_.back().end, end);
    return;
  }
  ranges_.push_back({begin, end});
}

std::int64_t KeyRanges::count() const {
  std::int64_t total = 0;
  for (const KeyRange& range : ranges_) total += range.end - range.begin;
  return total;
}

bool KeyRanges::contains(std::int64_t key) const {
  for (const KeyRange& range : ranges_)
    if (key < range.end) return key >= range.begin;
  return false;
}

std::int64_t KeyRanges::nth(std::int64_t n) const {
  for (const KeyRange& range : ranges_) {
    const std::int64_t length = range.end - range.begin;
    if (n < length) return range.begin + n;
    n -= length;
  }
  return -1;
}

void intersect(const KeyRanges& a, const KeyRanges& b, KeyRanges& out) {
  out.clear();
  auto left = a.ranges().begin();
  auto right = b.ranges().begin();
  while (left != a.ranges().end() && right != b.ranges().end()) {
    out.append(std::max(left->begin, right->begin),
               std::min(left->end, right->end));
    if (left->end < right->end)
      ++left;
    else
      ++right;
  }
}

void unite(const KeyRanges& a, const KeyRanges& b, KeyRanges& out) {
  out.clear();
  auto left = a.ranges().begin();
  auto right = b.ranges().begin();
  while (left != a.ranges().end() || right != b.ranges().end()) {
    const bool take_left =
        right == b.ranges().end() ||
        (left != a.ranges().end() && left->begin <= right->begin);
    const KeyRange& range = take_left ? *left++ : *right++;
    out.append(range.begin, range.end);
  }
}

}  // namespace attnguard
