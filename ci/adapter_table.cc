#include "ci/adapter_table.h"

#include <array>

#include "adapters/defect/defects.h"
#include "adapters/plain/builtin.h"
#if ATTNGUARD_WITH_GGML
#include "adapters/llama_cpp/ggml.h"
#endif
#if ATTNGUARD_WITH_LIBTORCH
#include "adapters/libtorch/libtorch.h"
#endif
#if ATTNGUARD_WITH_ONNXRUNTIME
#include "adapters/onnxruntime/onnxruntime.h"
#endif
#include "adapters/plugin/plugin.h"
#include "guard/base/text.h"

namespace attnguard {

std::span<const Adapter* const> all_adapters() {
  static const std::array kAdapters = {
    &kBuiltinAdapter,
    &kDefectAdapter,
    &kPluginAdapter,
#if ATTNGUARD_WITH_GGML
    &kGgmlAdapter,
#endif
#if ATTNGUARD_WITH_ONNXRUNTIME
    &kOnnxRuntimeAdapter,
#endif
#if ATTNGUARD_WITH_LIBTORCH
    &kLibTorchAdapter,
#endif
  };
  return kAdapters;
}

const Adapter* find_adapter(std::string_view name) {
  for (const Adapter* adapter : all_adapters())
    if (adapter->name == name) return adapter;
  return nullptr;
}

Result<Engine> open_engine(std::string_view spec) {
  std::string name;
  const Result<EngineSpec> parsed = parse_engine_spec(spec, name);
  if (!parsed.ok()) return parsed.status();
  const Adapter* adapter = find_adapter(name);
  if (adapter == nullptr) {
    std::vector<std::string_view> known;
    for (const Adapter* each : all_adapters()) known.push_back(each->name);
    return invalid_argument("engine '" + std::string(spec) +
                            "': unknown adapter '" + name + "'" +
                            suggestion(name, known));
  }
  return adapter->open(parsed.value());
}

}  // namespace attnguard
