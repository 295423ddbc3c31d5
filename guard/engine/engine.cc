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

namespace {

struct FeatureInfo {
  Feature feature;
  std::string_view name;

  // Whether the problem needs it; nullptr: no problem does.
  bool (*needed)(const Problem&);
};

constexpr FeatureInfo kFeatures[] = {
    {Feature::kSoftcap, "softcap",
     [](const Problem& p) { return p.softcap.has_value(); }},
    {Feature::kAlibi, "alibi",
     [](const Problem& p) { return p.alibi_max_bias.has_value(); }},
    {Feature::kSinks, "sinks",
     [](const Problem& p) { return !p.sinks.empty(); }},
    {Feature::kMaskTensor, "mask_tensor",
     [](const Problem& p) { return p.mask_form != MaskForm::kImplied; }},
    {Feature::kValueInKey, "value_in_key",
     [](const Problem& p) { return p.value_in_key; }},
    {Feature::kPacked, "packed", [](const Problem& p) { return p.packed; }},
    {Feature::kPaged, "paged",
     [](const Problem& p) { return p.block_size > 0; }},
    {Feature::kLse, "softmax_lse", nullptr},
    {Feature::kWeights, "weights", nullptr},
};

// Whatever a callback throws becomes a failure that names the engine.
Status guarded(const Engine& engine, const std::function<Status()>& callback) {
  try {
    Status status = callback();
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

}  // namespace

std::string_view feature_name(Feature feature) {
  for (const FeatureInfo& info : kFeatures)
    if (info.feature == feature) return info.name;
  return {};
}

std::vector<Feature> all_input_features() {
  std::vector<Feature> features;
  for (const FeatureInfo& info : kFeatures)
    if (info.needed != nullptr) features.push_back(info.feature);
  return features;
}

bool Capabilities::has(Feature feature) const {
  return std::find(features.begin(), features.end(), feature) != features.end();
}

std::string unsupported_reason(const Engine& engine, const Problem& problem) {
  const auto& dtypes = engine.capabilities.dtypes;
  if (std::find(dtypes.begin(), dtypes.end(), problem.dtype) == dtypes.end())
    return "dtype " + std::string(dtype_name(problem.dtype)) +
           " is not supported";
  for (const FeatureInfo& info : kFeatures)
    if (info.needed != nullptr && info.needed(problem) &&
        !engine.capabilities.has(info.feature))
      return std::string(info.name) + " is not supported";
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
  return guarded(engine, [&] { return engine.run(call); });
}

Status run_append(const Engine& engine, const CacheAppend& append) {
  if (!engine.append)
    return {StatusCode::kEngineFailure,
            "engine '" + engine.name + "' has no append callback"};
  return guarded(engine, [&] { return engine.append(append); });
}

}  // namespace attnguard
