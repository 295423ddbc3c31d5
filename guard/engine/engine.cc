#include "guard/engine/engine.h"

#include <algorithm>
#include <exception>

namespace attnguard {

Numerics default_numerics(const Problem& problem) {
  Numerics numerics;
  if (problem.dtype == Dtype::kFp64)
    numerics.score = numerics.probability = numerics.accumulator = Dtype::kFp64;
  return numerics;
}

std::string unsupported_reason(const Engine& engine, const Problem& problem) {
  const auto& dtypes = engine.capabilities.dtypes;
  if (std::find(dtypes.begin(), dtypes.end(), problem.dtype) == dtypes.end())
    return "dtype " + std::string(dtype_name(problem.dtype)) +
           " is not supported";
  if (!engine.capabilities.unsupported) return {};
  return engine.capabilities.unsupported(problem);
}

Numerics numerics_of(const Engine& engine, const Problem& problem) {
  return engine.capabilities.numerics ? engine.capabilities.numerics(problem)
                                      : default_numerics(problem);
}

Status run_engine(const Engine& engine, const AttentionCall& call) {
  if (!engine.run)
    return {StatusCode::kEngineFailure,
            "engine '" + engine.name + "' has no callback"};
  try {
    Status status = engine.run(call);
    if (status.ok()) return status;
    return {StatusCode::kEngineFailure,
            "engine '" + engine.name + "' failed: " + status.message()};
  } catch (const std::exception& error) {
    return {StatusCode::kEngineFailure,
            "engine '" + engine.name + "' threw an exception: " + error.what()};
  } catch (...) {
    return {StatusCode::kEngineFailure,
            "engine '" + engine.name +
                "' threw something that is not a std::exception"};
  }
}

}  // namespace attnguard
