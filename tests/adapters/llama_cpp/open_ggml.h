// ggml's engines by the text that follows "ggml:".
#ifndef ATTNGUARD_TESTS_ADAPTERS_LLAMA_CPP_OPEN_GGML_H_
#define ATTNGUARD_TESTS_ADAPTERS_LLAMA_CPP_OPEN_GGML_H_

#include <gtest/gtest.h>

#include <string>

#include "adapters/llama_cpp/ggml.h"

namespace attnguard {

// One thread: ggml's threads spin at barriers, and tests run side by side.
inline Result<Engine> open_ggml(const std::string& text) {
  std::string adapter;
  Result<EngineSpec> spec =
      parse_engine_spec("ggml:" + text + ",threads=1", adapter);
  EXPECT_TRUE(spec.ok()) << spec.status().message();
  return kGgmlAdapter.open(spec.value());
}

}  // namespace attnguard

#endif  // ATTNGUARD_TESTS_ADAPTERS_LLAMA_CPP_OPEN_GGML_H_
