// Opens an engine by its specification for the benchmarks.
#ifndef ATTNGUARD_BENCH_ENGINES_H_
#define ATTNGUARD_BENCH_ENGINES_H_

#include <string>

#include "adapters/adapter.h"
#include "adapters/plain/builtin.h"
#ifdef ATTNGUARD_WITH_GGML
#include "adapters/llama_cpp/ggml.h"
#endif

namespace attnguard {

inline Result<Engine> open_engine(const std::string& text) {
  std::string adapter;
  const Result<EngineSpec> spec = parse_engine_spec(text, adapter);
  if (!spec.ok()) return spec.status();
  if (adapter == kBuiltinAdapter.name)
    return kBuiltinAdapter.open(spec.value());
#ifdef ATTNGUARD_WITH_GGML
  if (adapter == kGgmlAdapter.name) return kGgmlAdapter.open(spec.value());
#endif
  return Status(StatusCode::kNotFound, "no adapter '" + adapter + "' here");
}

}  // namespace attnguard

#endif  // ATTNGUARD_BENCH_ENGINES_H_
