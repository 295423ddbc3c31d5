#include "guard/runtime/budget.h"

#include <algorithm>
#include <chrono>

namespace attnguard::runtime_internal {

std::int64_t monotonic_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Budget::Budget(double share, double window_seconds)
    : share_(share),
      bucket_width_(std::max<std::int64_t>(
          static_cast<std::int64_t>(window_seconds * 1e9 / (kBuckets - 1)), 1)),
      window_(bucket_width_ * (kBuckets - 1)) {}

void Budget::start(std::int64_t now) {
  // What an earlier thread overspent is still to be paid back.
  if (share_ >= 0)
    total_ = std::max(
        0.0, total_ - share_ * static_cast<double>(
                                   std::max<std::int64_t>(now - start_, 0)));
  start_ = now;
  bucket_ = now / bucket_width_;
}

void Budget::advance(std::int64_t now) {
  const std::int64_t bucket = now / bucket_width_;
  const std::int64_t steps = std::min(bucket - bucket_, kBuckets);
  for (std::int64_t step = 1; step <= steps; ++step) {
    std::int64_t& old =
        spent_[static_cast<std::size_t>((bucket_ + step) % kBuckets)];
    sum_ -= old;
    old = 0;
  }
  // The buckets that were passed in one leap are all empty now.
  bucket_ = std::max(bucket_, bucket);
}

double Budget::most() const {
  return share_ < 0 ? 0x1p62 : share_ * static_cast<double>(window_);
}

double Budget::room(std::int64_t now) {
  if (share_ < 0) return 0x1p62;
  advance(now);
  const auto span = static_cast<double>(std::min(now - start_, window_));
  // A window forgets what it held; what was spent beyond it is not forgotten.
  return std::min(share_ * span - static_cast<double>(sum_),
                  share_ * static_cast<double>(now - start_) - total_);
}

void Budget::spend(std::int64_t now, std::int64_t nanoseconds) {
  advance(now);
  spent_[static_cast<std::size_t>(bucket_ % kBuckets)] += nanoseconds;
  sum_ += nanoseconds;
  total_ += static_cast<double>(nanoseconds);
}

double Budget::used(std::int64_t now) {
  advance(now);
  const auto span = static_cast<double>(std::min(now - start_, window_));
  return span > 0 ? static_cast<double>(sum_) / span : 0;
}

void CostModel::learn(double units, std::int64_t nanoseconds) {
  const double seen = std::max(static_cast<double>(nanoseconds) - kFixed, 0.0) /
                      std::max(units, 1.0);
  if (!learnt_) {
    // A first run is cold: believed, but not for long.
    usual_ = std::max(seen, 1e-6);
    learnt_ = true;
    return;
  }
  const double ratio = seen / usual_;
  peak_ = ratio > peak_ ? std::min(ratio, kHighest)
                        : std::max(1 + (peak_ - 1) * 0.95, kMargin);
  // A thread that was put to sleep is no price.
  usual_ += 0.1 * (std::min(seen, 4 * usual_) - usual_);
  usual_ = std::max(usual_, 1e-6);
}

}  // namespace attnguard::runtime_internal
