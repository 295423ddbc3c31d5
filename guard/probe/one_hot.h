// V = unit vectors for keys [first_key, first_key + columns): column c of a
// row's output is the weight of key first_key + c itself.
#ifndef ATTNGUARD_GUARD_PROBE_ONE_HOT_H_
#define ATTNGUARD_GUARD_PROBE_ONE_HOT_H_

#include <algorithm>

#include "guard/probe/pattern.h"

namespace attnguard {

class OneHot final : public ValuePattern {
 public:
  OneHot(std::int64_t first_key, std::int64_t columns)
      : first_key_(first_key), columns_(columns) {}

  std::string name() const override {
    return "one-hot@" + std::to_string(first_key_);
  }
  std::int64_t first_key() const { return first_key_; }
  std::int64_t columns() const override { return columns_; }
  void value_row(std::int64_t, std::int64_t, std::int64_t kv_index,
                 double* to) const override {
    std::fill_n(to, columns_, 0.0);
    const std::int64_t column = kv_index - first_key_;
    if (column >= 0 && column < columns_) to[column] = 1;
  }

 private:
  std::int64_t first_key_;
  std::int64_t columns_;
};

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_PROBE_ONE_HOT_H_
