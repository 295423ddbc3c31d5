#include "adapters/libtorch/libtorch.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "adapters/libtorch/module.h"
#include "adapters/libtorch/sdpa.h"
#include "guard/base/text.h"

namespace attnguard {
namespace {

using libtorch::CausalFlag;
using libtorch::Kernel;
using libtorch::Sdpa;

constexpr std::array<std::string_view, 2> kEngines = {"sdpa", "sdpa_weights"};
constexpr std::array<std::string_view, 3> kOptions = {"threads", "causal",
                                                      "path"};

std::string quoted(std::string_view text) {
  return "'" + std::string(text) + "'";
}

std::string option(const EngineSpec& spec, std::string_view name) {
  const auto given = spec.options.find(std::string(name));
  return given == spec.options.end() ? std::string() : given->second;
}

Status check_names(const EngineSpec& spec) {
  if (std::find(kEngines.begin(), kEngines.end(), spec.engine) ==
      kEngines.end())
    return invalid_argument("libtorch: no engine " + quoted(spec.engine) +
                            suggestion(spec.engine, kEngines));
  for (const auto& [name, value] : spec.options)
    if (std::find(kOptions.begin(), kOptions.end(), name) == kOptions.end())
      return invalid_argument("libtorch: unknown option " + quoted(name) +
                              suggestion(name, kOptions));
  return ok_status();
}

Result<int> threads_of(const EngineSpec& spec) {
  if (!spec.options.contains("threads")) return omp_get_max_threads();
  const std::string text = option(spec, "threads");
  const std::optional<std::int64_t> count = parse_int(text);
  if (!count || *count < 1 || *count > 512)
    return invalid_argument("libtorch: threads= expects 1 to 512, not " +
                            quoted(text));
  return static_cast<int>(*count);
}

Result<CausalFlag> causal_of(const EngineSpec& spec) {
  if (!spec.options.contains("causal")) return CausalFlag::kAuto;
  const std::string text = option(spec, "causal");
  if (text == "auto") return CausalFlag::kAuto;
  if (text == "flag") return CausalFlag::kAlways;
  if (text == "tensor") return CausalFlag::kNever;
  return invalid_argument("libtorch: causal= is auto, flag or tensor, not " +
                          quoted(text));
}

std::vector<EngineListing> list_engines() {
  return {{"libtorch:sdpa",
           "ATen's scaled_dot_product_attention on the CPU; K and V heads are "
           "repeated"},
          {"libtorch:sdpa_weights",
           "the same with need_attn_weights=true (LibTorch 1.13)"}};
}

Engine make_engine(const EngineSpec& spec, std::shared_ptr<const Sdpa> sdpa) {
  Engine engine;
  engine.name = spec.full;
  engine.description = std::string(sdpa->kernel->function) +
                       " on the CPU, LibTorch " + sdpa->kernel->version;
  engine.capabilities.features = {Feature::kMaskTensor, Feature::kValueInKey,
                                  Feature::kPacked, Feature::kPaged};
  if (sdpa->weights) engine.capabilities.features.push_back(Feature::kWeights);
  engine.capabilities.numerics = [sdpa](const Problem& problem) {
    return sdpa->numerics(problem);
  };
  // Every dtype is listed: the reason why one does not run is ATen's own.
  engine.capabilities.unsupported = [sdpa](const Problem& problem) {
    return sdpa->unsupported(problem);
  };
  engine.run = [sdpa](const AttentionCall& call) { return sdpa->run(call); };
  return engine;
}

Result<Engine> open_engine(const EngineSpec& spec) {
  if (Status status = check_names(spec); !status.ok()) return status;
  const Result<int> threads = threads_of(spec);
  if (!threads.ok()) return threads.status();
  const Result<CausalFlag> causal = causal_of(spec);
  if (!causal.ok()) return causal.status();
  const Result<const Kernel*> kernel =
      libtorch::load_kernel(option(spec, "path"));
  if (!kernel.ok()) return kernel.status();

  const auto sdpa = std::make_shared<Sdpa>();
  sdpa->kernel = kernel.value();
  sdpa->weights = spec.engine == "sdpa_weights";
  sdpa->causal = causal.value();
  sdpa->threads = threads.value();
  if (sdpa->weights && !sdpa->kernel->has_weights)
    return unsupported(std::string("libtorch: ") + sdpa->kernel->function +
                       " of LibTorch " + sdpa->kernel->version +
                       " gives no weights; use libtorch:sdpa");
  sdpa->find_behaviour();
  return make_engine(spec, sdpa);
}

}  // namespace

const Adapter kLibTorchAdapter = {
    "libtorch", "LibTorch's scaled dot product attention on the CPU",
    list_engines, open_engine};

}  // namespace attnguard
