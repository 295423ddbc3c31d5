// Values of the live guard's settings as text, and back.
#ifndef ATTNGUARD_GUARD_POLICY_RUNTIME_VALUES_H_
#define ATTNGUARD_GUARD_POLICY_RUNTIME_VALUES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "guard/base/status.h"
#include "guard/policy/runtime_policy.h"

namespace attnguard {

// "1/1000", "1" (every one), "0" or "off" (none); the result is 1000, 1, 0.
Result<std::int64_t> parse_one_in(std::string_view text);
std::string one_in_text(std::int64_t every);

// "0.5%", "0.005" or "none".
Result<std::optional<double>> parse_share(std::string_view text);
std::string share_text(const std::optional<double>& share);

// "64MiB", "1GiB", "100KiB" or a number of bytes.
Result<std::int64_t> parse_bytes(std::string_view text);
std::string bytes_text(std::int64_t bytes);

// A number from 0 on; `unit` is allowed behind it ("10s").
Result<double> parse_amount(std::string_view text, std::string_view unit);

Result<std::int64_t> parse_count(std::string_view text, std::int64_t lowest,
                                 std::int64_t highest);

// "true" or "1", "false" or "0".
Result<bool> parse_switch(std::string_view text);

// "log,dump"; "count" alone for nothing else.
Result<ActionSet> parse_actions(std::string_view text);
std::string actions_text(ActionSet actions);

Result<Severity> parse_severity(std::string_view text);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_POLICY_RUNTIME_VALUES_H_
