// Tests of engines that may be absent: skipped where the engine is not found,
// unless the environment says that it must be there.
#ifndef ATTNGUARD_TESTS_SUPPORT_REQUIRED_ENGINE_H_
#define ATTNGUARD_TESTS_SUPPORT_REQUIRED_ENGINE_H_

#include <cstdlib>
#include <string_view>

#include "guard/base/text.h"

namespace attnguard {

// True when ATTNGUARD_REQUIRE_ENGINES, a list such as "ggml,onnxruntime",
// names the engine.
inline bool engine_is_required(std::string_view name) {
  const char* required = std::getenv("ATTNGUARD_REQUIRE_ENGINES");
  if (!required) return false;
  for (std::string_view piece : split(required, ','))
    if (piece == name) return true;
  return false;
}

}  // namespace attnguard

// Ends the test where the engine was not found: skipped, or failed where it is
// required. What is found and does not open fails.
#define ATTNGUARD_SKIP_WITHOUT(name, engine)                 \
  if (!(engine).ok()) {                                      \
    if ((engine).status().code() != StatusCode::kNotFound || \
        attnguard::engine_is_required(name))                 \
      FAIL() << (engine).status().message();                 \
    GTEST_SKIP() << "skipped: " name " not found: "          \
                 << (engine).status().message();             \
  }                                                          \
  static_assert(true)

#endif  // ATTNGUARD_TESTS_SUPPORT_REQUIRED_ENGINE_H_
