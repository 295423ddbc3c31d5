#include "adapters/onnxruntime/onnxruntime.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "adapters/onnxruntime/kernel.h"
#include "adapters/onnxruntime/session.h"
#include "guard/base/text.h"

namespace attnguard {
namespace {

using onnxruntime::all_kernels;
using onnxruntime::Kernel;
using onnxruntime::Library;
using onnxruntime::NodeCall;
using onnxruntime::Sessions;

constexpr std::array<std::string_view, 4> kEngineOptions = {"path", "version",
                                                            "opset", "threads"};

std::string in_quotes(std::string_view text) {
  return "'" + std::string(text) + "'";
}

std::string option(const EngineSpec& spec, std::string_view name) {
  const auto given = spec.options.find(std::string(name));
  return given == spec.options.end() ? std::string() : given->second;
}

Result<const Kernel*> find_kernel(const EngineSpec& spec) {
  std::vector<std::string_view> known;
  for (const Kernel* kernel : all_kernels()) {
    if (kernel->name == spec.engine) return kernel;
    known.push_back(kernel->name);
  }
  return invalid_argument("onnxruntime: no engine " + in_quotes(spec.engine) +
                          suggestion(spec.engine, known));
}

Status check_options(const EngineSpec& spec) {
  for (const auto& [name, value] : spec.options)
    if (std::find(kEngineOptions.begin(), kEngineOptions.end(), name) ==
        kEngineOptions.end())
      return invalid_argument("onnxruntime: unknown option " + in_quotes(name) +
                              suggestion(name, kEngineOptions));
  if (!option(spec, "path").empty() && !option(spec, "version").empty())
    return invalid_argument(
        "onnxruntime: path= and version= both name a library; keep one");
  return ok_status();
}

Result<int> opset_of(const EngineSpec& spec, const Kernel& kernel) {
  const std::string text = option(spec, "opset");
  if (text.empty()) return kernel.opsets.front();
  const std::optional<std::int64_t> number = parse_int(text);
  std::string allowed;
  for (int opset : kernel.opsets) {
    if (number == opset) return opset;
    allowed += (allowed.empty() ? "" : " or ") + std::to_string(opset);
  }
  return invalid_argument("onnxruntime: opset= of " + std::string(kernel.name) +
                          " is " + allowed + ", not " + in_quotes(text));
}

Result<int> threads_of(const EngineSpec& spec) {
  const std::string text = option(spec, "threads");
  if (text.empty()) return omp_get_max_threads();
  const std::optional<std::int64_t> count = parse_int(text);
  if (!count || *count < 1 || *count > 512)
    return invalid_argument("onnxruntime: threads= expects 1 to 512, not " +
                            in_quotes(text));
  return static_cast<int>(*count);
}

// Operators reject tensors without elements: no row has a key.
void write_zeros(const AttentionCall& call) {
  const Problem& problem = *call.problem;
  const std::vector<double> zeros(static_cast<std::size_t>(problem.head_dim_v),
                                  0.0);
  for (std::int64_t b = 0; b < problem.batch; ++b)
    for (std::int64_t h = 0; h < problem.num_heads; ++h)
      for (std::int64_t i = 0; i < problem.len_q(b); ++i)
        call.output.store_row(b, h, i, 0, problem.head_dim_v, zeros.data());
}

Status run(const Kernel& kernel, int opset, Sessions& sessions,
           const AttentionCall& call) {
  const Problem& problem = *call.problem;
  if (problem.max_len_q() == 0) return ok_status();
  if (problem.max_len_kv() == 0) {
    write_zeros(call);
    return ok_status();
  }
  NodeCall node = kernel.prepare(call, opset);
  if (Status status = sessions.run(node); !status.ok()) return status;
  kernel.finish(node, call);
  return ok_status();
}

std::vector<EngineListing> list_engines() {
  std::vector<EngineListing> engines;
  for (const Kernel* kernel : all_kernels())
    engines.push_back({"onnxruntime:" + std::string(kernel->name),
                       std::string(kernel->summary)});
  return engines;
}

Result<Engine> open_engine(const EngineSpec& spec) {
  const Result<const Kernel*> found = find_kernel(spec);
  if (!found.ok()) return found.status();
  const Kernel* kernel = found.value();
  if (Status status = check_options(spec); !status.ok()) return status;
  const Result<int> opset = opset_of(spec, *kernel);
  if (!opset.ok()) return opset.status();
  const Result<int> threads = threads_of(spec);
  if (!threads.ok()) return threads.status();
  const Result<std::shared_ptr<const Library>> library =
      onnxruntime::load_library(option(spec, "path"), option(spec, "version"));
  if (!library.ok()) return library.status();

  Engine engine;
  engine.name = spec.full;
  engine.description = std::string(kernel->summary) + ", ONNX Runtime " +
                       library.value()->version + " in " +
                       library.value()->file;
  engine.capabilities.dtypes = kernel->dtypes();
  engine.capabilities.features = kernel->features();
  engine.capabilities.numerics = kernel->numerics;
  engine.capabilities.unsupported =
      [kernel, opset = opset.value()](const Problem& problem) {
        return kernel->unsupported(problem, opset);
      };
  const auto sessions =
      std::make_shared<Sessions>(library.value(), threads.value());
  engine.run = [kernel, opset = opset.value(),
                sessions](const AttentionCall& call) {
    return run(*kernel, opset, *sessions, call);
  };
  return engine;
}

}  // namespace

const Adapter kOnnxRuntimeAdapter = {
    "onnxruntime",
    "ONNX Runtime's CPU attention operators, from a library found here",
    list_engines, open_engine};

}  // namespace attnguard
