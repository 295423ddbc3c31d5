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
  // What an earlier thread overspent is still to be paid back; its window is
  // none of this thread's.
  if (share_ >= 0)
    total_ = std::max(
        0.0, total_ - share_ * static_cast<double>(
                                   std::max<std::int64_t>(now - start_, 0)));
  start_ = now;
  sum_ = 0;
  for (std::atomic<std::int64_t>& each : spent_) each = 0;
  announced_ = settled_ = now / bucket_width_;
}

void Budget::advance(std::int64_t now) {
  const std::int64_t last = announced_.load(std::memory_order_relaxed);
  const std::int64_t step = now / bucket_width_;
  if (step <= last) return;
  announced_.store(step, std::memory_order_relaxed);
  // After a leap every bucket is emptied once.
  const std::int64_t buckets = std::min(step - last, kBuckets);
  for (std::int64_t n = 1; n <= buckets; ++n) {
    std::atomic<std::int64_t>& old = bucket(last + n);
    sum_ -= old.load(std::memory_order_relaxed);
    old.store(0, std::memory_order_release);
  }
  settled_.store(step, std::memory_order_release);
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
  std::atomic<std::int64_t>& present =
      bucket(announced_.load(std::memory_order_relaxed));
  // A store of the owner, the only writer; releases for used().
  present.store(present.load(std::memory_order_relaxed) + nanoseconds,
                std::memory_order_release);
  sum_ += nanoseconds;
  total_ += static_cast<double>(nanoseconds);
}

double Budget::used(std::int64_t now) const {
  const auto span = static_cast<double>(std::min(now - start_, window_));
  if (span <= 0) return 0;
  std::int64_t sum = 0;
  // The owner moves on once in a bucket's width: one more try is enough, unless
  // a test has windows of microseconds.
  for (int tries = 0; tries < 4; ++tries) {
    const std::int64_t settled = settled_.load(std::memory_order_acquire);
    const std::int64_t step = std::max(now / bucket_width_, settled);
    sum = 0;
    // Step n lies in the window, and its bucket was not given to another.
    for (std::int64_t n = std::max<std::int64_t>(step - kBuckets + 1, 0);
         n <= settled; ++n)
      sum += spent_[static_cast<std::size_t>(n % kBuckets)].load(
          std::memory_order_acquire);
    if (announced_.load(std::memory_order_relaxed) == settled) break;
  }
  return static_cast<double>(sum) / span;
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
