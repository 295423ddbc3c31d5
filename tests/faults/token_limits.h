// Saturation at a limit for each token, as stored scales of a quantised cache
// cause it.
#ifndef ATTNGUARD_TESTS_FAULTS_TOKEN_LIMITS_H_
#define ATTNGUARD_TESTS_FAULTS_TOKEN_LIMITS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "guard/engine/attention_variant.h"

namespace attnguard {

// By (batch, kv_head): one limit for each position.
using TokenLimits =
    std::map<std::pair<std::int64_t, std::int64_t>, std::vector<double>>;

inline std::pair<std::int64_t, std::int64_t> slot_of(const KvSlot& slot) {
  return {slot.batch, slot.kv_head};
}

// The largest magnitude of each row of [positions, channels].
inline std::vector<double> limits_of(std::span<const double> rows,
                                     std::int64_t channels) {
  std::vector<double> limits(rows.size() / static_cast<std::size_t>(channels),
                             0.0);
  for (std::size_t n = 0; n < rows.size(); ++n) {
    double& limit = limits[n / static_cast<std::size_t>(channels)];
    limit = std::max(limit, std::abs(rows[n]));
  }
  return limits;
}

inline void saturate(const std::vector<double>& limits,
                     std::span<double> rows) {
  const std::size_t channels = rows.size() / limits.size();
  for (std::size_t n = 0; n < rows.size(); ++n) {
    const double limit = limits[n / channels];
    rows[n] = std::clamp(rows[n], -limit, limit);
  }
}

}  // namespace attnguard

#endif  // ATTNGUARD_TESTS_FAULTS_TOKEN_LIMITS_H_
