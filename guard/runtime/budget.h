// What the guard may still spend. One per thread: no other thread writes it,
// and of its functions others may call used() alone.
//
// Time is that of the monotonic clock, in nanoseconds. The promise: over every
// span of `window` seconds the guard's time is at most `share` of it, as far as
// costs are known before they are spent. What was spent beyond a prediction is
// taken back before anything else is allowed.
#ifndef ATTNGUARD_GUARD_RUNTIME_BUDGET_H_
#define ATTNGUARD_GUARD_RUNTIME_BUDGET_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace attnguard::runtime_internal {

// The monotonic clock in nanoseconds.
std::int64_t monotonic_now();

class Budget {
 public:
  // share < 0: no limit.
  Budget(double share, double window_seconds);

  // A thread begins: nothing may be spent before time has passed since then.
  // No other thread may call used() meanwhile.
  void start(std::int64_t now);

  // What may be spent now without breaking the promise; at most 2^62.
  double room(std::int64_t now);

  // What a whole window without spending gives: more is never allowed.
  double most() const;

  void spend(std::int64_t now, std::int64_t nanoseconds);

  // Spent in the window that ends now, as a share of it. Any thread: the window
  // moves on by the caller's clock, whether or not the owner spends meanwhile.
  double used(std::int64_t now) const;

  bool limited() const { return share_ >= 0; }

 private:
  // One bucket more than a window has: what is counted covers it whole.
  static constexpr std::int64_t kBuckets = 33;

  // Times are counted in steps of a bucket's width; a step's bucket is that of
  // its number modulo kBuckets.
  std::atomic<std::int64_t>& bucket(std::int64_t step) {
    return spent_[static_cast<std::size_t>(step % kBuckets)];
  }
  void advance(std::int64_t now);

  double share_;
  std::int64_t bucket_width_;
  std::int64_t window_;
  std::int64_t start_ = 0;
  std::int64_t sum_ = 0;
  double total_ = 0;  // Spent since the start, and debts from before it.

  // The owner announces a step, empties buckets for it, and settles it: whoever
  // reads in between sees the two differ.
  std::atomic<std::int64_t> announced_{0}, settled_{0};
  std::array<std::atomic<std::int64_t>, kBuckets> spent_ = {};
};

// Savings for what costs more than a window allows: the shadow checks and the
// canary. Time since the start is paid in, what was spent is taken out: over
// the life of the thread the share is kept, and nothing waits for ever.
class Savings {
 public:
  explicit Savings(double share) : share_(share) {}  // < 0: no limit
  void start(std::int64_t now) {
    // A thread that follows another inherits its debts, not its whole past.
    if (share_ >= 0)
      spent_ =
          std::max(0.0, spent_ - share_ * static_cast<double>(now - start_));
    start_ = now;
  }
  double room(std::int64_t now) const {
    if (share_ < 0) return 0x1p62;
    return share_ * static_cast<double>(now - start_) - spent_;
  }
  void spend(std::int64_t nanoseconds) {
    spent_ += static_cast<double>(nanoseconds);
  }

 private:
  double share_;
  std::int64_t start_ = 0;
  double spent_ = 0;
};

// What a check costs: nanoseconds for each unit of its work, learnt from what
// it took. Leans to the high side and comes down slowly.
class CostModel {
 public:
  explicit CostModel(double first_guess = 1) : usual_(first_guess) {}

  double predict(double units) const { return kFixed + units * usual_ * peak_; }

  void learn(double units, std::int64_t nanoseconds);

  // Nothing was run: a peak that nothing repeats is forgotten.
  void forget() { peak_ = peak_ > kMargin ? 1 + (peak_ - 1) * 0.9 : kMargin; }

 private:
  static constexpr double kFixed = 1000;   // clocks, bookkeeping
  static constexpr double kMargin = 1.15;  // of predictions over what is usual
  static constexpr double kHighest = 8;

  double usual_;
  double peak_ = 3;  // Largest cost of late, over the usual one; first a guess.
  bool learnt_ = false;
};

}  // namespace attnguard::runtime_internal

#endif  // ATTNGUARD_GUARD_RUNTIME_BUDGET_H_
