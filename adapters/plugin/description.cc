#include "adapters/plugin/description.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "adapters/plugin/calls.h"
#include "adapters/plugin/codes.h"

namespace attnguard::plugin {
namespace {

// A struct that a plugin fills in, and bytes behind it that one built with a
// newer header would write to.
template <typename Struct>
struct Filled {
  static constexpr unsigned char kGuardByte = 0x5a;

  Struct value = {};
  std::array<unsigned char, 1024> behind;

  Filled() {
    value.size = sizeof value;
    behind.fill(kGuardByte);
  }
  bool overrun() const {
    return std::any_of(behind.begin(), behind.end(),
                       [](unsigned char byte) { return byte != kGuardByte; });
  }
};

Status overran(const char* function, std::size_t size) {
  return engine_failure(
      std::string(function) +
      "() wrote past the end of its struct, whose size is " +
      std::to_string(size) +
      ": heed the size field, or build the plugin with the header "
      "of this attnguard");
}

template <std::size_t kSize>
Status read_text(const char (&text)[kSize], const char* field,
                 std::string& to) {
  const char* end = std::find(text, text + kSize, '\0');
  if (end == text + kSize)
    return engine_failure("describe(): " + std::string(field) +
                          " does not end with 0 within its " +
                          std::to_string(kSize) + " bytes");
  to.assign(text, end);
  return ok_status();
}

Status read_flag(std::uint32_t value, const char* field, bool& to) {
  if (value > 1)
    return engine_failure("describe(): " + std::string(field) + " is " +
                          std::to_string(value) + ", which is neither 0 nor 1");
  to = value == 1;
  return ok_status();
}

Status read_capabilities(const attnguard_description& from, Description& to) {
  std::string unknown;
  to.dtypes = dtypes_of_bits(from.dtypes, unknown);
  if (!unknown.empty())
    return engine_failure(
        "describe(): dtypes has bits that stand for no dtype: " + unknown +
        "; use 1u << ATTNGUARD_FP32 and so on");
  if (to.dtypes.empty())
    return engine_failure(
        "describe(): dtypes is 0, so nothing can be run; set 1u << "
        "ATTNGUARD_FP32 or others");
  to.features = features_of_bits(from.features, unknown);
  if (!unknown.empty())
    return engine_failure(
        "describe(): features has bits that stand for no feature: " + unknown +
        "; use ATTNGUARD_FEATURE_...");
  Status status =
      read_flag(from.deterministic, "deterministic", to.deterministic);
  if (status.ok())
    status =
        read_flag(from.host_accessible, "host_accessible", to.host_accessible);
  return status;
}

Status read_dtype(std::uint32_t code, const char* field, Dtype& to) {
  const std::optional<Dtype> dtype = dtype_of_code(code);
  if (!dtype)
    return engine_failure("numerics(): " + std::string(field) + " is " +
                          std::to_string(code) + ", which is no dtype");
  to = *dtype;
  return ok_status();
}

Status read_number(double value, const char* field, double& to) {
  if (!std::isfinite(value) || value < 0)
    return engine_failure("numerics(): " + std::string(field) +
                          " is not a finite number of 0 or more");
  to = value;
  return ok_status();
}

}  // namespace

Result<Description> read_description(
    const std::function<Status(attnguard_description*)>& describe) {
  Filled<attnguard_description> filled;
  filled.value.deterministic = 1;
  if (Status status = describe(&filled.value); !status.ok()) return status;
  if (filled.overrun()) return overran("describe", sizeof filled.value);
  Description description;
  Status status = read_text(filled.value.name, "name", description.name);
  if (status.ok())
    status = read_text(filled.value.description, "description",
                       description.description);
  if (status.ok()) status = read_capabilities(filled.value, description);
  if (!status.ok()) return status;
  return description;
}

Result<Numerics> read_numerics(
    const Problem& problem,
    const std::function<Status(attnguard_numerics*)>& ask) {
  Numerics numerics = default_numerics(problem);
  Filled<attnguard_numerics> filled;
  attnguard_numerics& c = filled.value;
  c.score = dtype_code(numerics.score);
  c.probability = dtype_code(numerics.probability);
  c.accumulator = dtype_code(numerics.accumulator);
  if (Status status = ask(&c); !status.ok()) return status;
  if (filled.overrun()) return overran("numerics", sizeof c);
  Status status = read_dtype(c.score, "score", numerics.score);
  if (status.ok())
    status = read_dtype(c.probability, "probability", numerics.probability);
  if (status.ok())
    status = read_dtype(c.accumulator, "accumulator", numerics.accumulator);
  if (status.ok())
    status = read_number(c.max_input, "max_input", numerics.max_input);
  if (status.ok())
    status = read_number(c.key_error, "key_error", numerics.key_error);
  if (status.ok())
    status = read_number(c.value_error, "value_error", numerics.value_error);
  if (!status.ok()) return status;
  return numerics;
}

}  // namespace attnguard::plugin
