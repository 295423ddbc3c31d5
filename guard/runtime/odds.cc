#include "guard/runtime/odds.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attnguard {
namespace {

double chance_per_call(double chance, std::int64_t sample_every) {
  return sample_every <= 0 ? 0 : chance / static_cast<double>(sample_every);
}

}  // namespace

double chance_per_look(double wrong, std::int64_t rows) {
  if (!(wrong > 0) || rows <= 0) return 0;
  if (wrong >= 1) return 1;  // Whatever is drawn.
  // 1 - (1 - f)^k without the loss of digits that a small f brings.
  return -std::expm1(static_cast<double>(rows) *
                     std::log1p(-kFairShareOfDraws * wrong));
}

double calls_until_seen(double chance, std::int64_t sample_every,
                        double certainty) {
  const double each = chance_per_call(chance, sample_every);
  if (!(each > 0)) return std::numeric_limits<double>::infinity();
  if (each >= 1) return 1;
  return std::max(1.0, std::ceil(std::log1p(-certainty) / std::log1p(-each)));
}

double certainty_after(double chance, std::int64_t sample_every, double calls) {
  const double each = chance_per_call(chance, sample_every);
  if (each >= 1) return calls >= 1 ? 1 : 0;
  return -std::expm1(calls * std::log1p(-each));
}

}  // namespace attnguard
