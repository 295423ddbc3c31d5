// The example program that serves a model with the guard inside llama.cpp.
#ifndef ATTNGUARD_TESTS_ADAPTERS_LLAMA_CPP_LIVE_GUARDED_LLAMA_H_
#define ATTNGUARD_TESTS_ADAPTERS_LLAMA_CPP_LIVE_GUARDED_LLAMA_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "tests/support/required_engine.h"
#include "tests/support/tiny_gguf.h"

namespace attnguard {

// Its path; kNotFound where the build left it out.
inline Result<std::string> guarded_llama() {
#ifdef ATTNGUARD_GUARDED_LLAMA
  return std::string(ATTNGUARD_GUARDED_LLAMA);
#else
  return Status(StatusCode::kNotFound,
                "built without llama.cpp: run ci/fetch_engines.sh and "
                "configure again");
#endif
}

// A tiny model of that name, written once for each process.
inline std::string tiny_model(const std::string& name,
                              std::uint32_t head_dim = 16) {
  const std::string path = testing::TempDir() + "attnguard_live_" + name + "_" +
                           std::to_string(getpid()) + ".gguf";
  TinyGguf model = tiny_gguf(name);
  model.head_dim = head_dim;
  const Status status = write_tiny_gguf(model, 1, path);
  EXPECT_TRUE(status.ok()) << status.message();
  return path;
}

}  // namespace attnguard

#endif  // ATTNGUARD_TESTS_ADAPTERS_LLAMA_CPP_LIVE_GUARDED_LLAMA_H_
