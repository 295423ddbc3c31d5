// Values of the reports in JSON. Json is the class of nlohmann's library, which
// headers of the guard do not include.
#ifndef ATTNGUARD_GUARD_REPORT_JSON_VALUES_H_
#define ATTNGUARD_GUARD_REPORT_JSON_VALUES_H_

#include <cmath>
#include <cstdint>

namespace attnguard {

// JSON has no NaN and no infinities.
template <typename Json>
Json json_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

// null for an index that says nothing.
template <typename Json>
Json json_index(std::int64_t value) {
  return value < 0 ? Json(nullptr) : Json(value);
}

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_REPORT_JSON_VALUES_H_
