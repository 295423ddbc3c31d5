#include "adapters/onnxruntime/model_values.h"

#include <cstring>
#include <utility>

#include "adapters/onnxruntime/model_ports.h"
#include "guard/base/dtype.h"

namespace attnguard::onnxruntime {
namespace {

template <typename T>
void append(std::vector<std::byte>& bytes, T value) {
  const std::size_t at = bytes.size();
  bytes.resize(at + sizeof(value));
  std::memcpy(bytes.data() + at, &value, sizeof(value));
}

Dtype real_type(int type) {
  switch (type) {
    case kDouble:
      return Dtype::kFp64;
    case kFloat16:
      return Dtype::kFp16;
    case kFloat:
      return Dtype::kFp32;
    default:
      return Dtype::kBf16;
  }
}

}  // namespace

Run::~Run() {
  for (OrtValue* value : inputs_) library_.call.ReleaseValue(value);
  for (OrtValue* value : outputs_)
    if (value != nullptr) library_.call.ReleaseValue(value);
}

Status Run::add_input(NodeTensor tensor) {
  const std::size_t bytes = tensor.bytes.size();
  // An empty cache has no bytes, and its address must not be null.
  if (bytes == 0) tensor.bytes.resize(1);
  tensors_.push_back(std::move(tensor));
  NodeTensor& kept = tensors_.back();
  OrtValue* value = nullptr;
  Status status = library_.status(
      library_.call.CreateTensorWithDataAsOrtValue(
          library_.memory, kept.bytes.data(), bytes, kept.dims.data(),
          kept.dims.size(), kept.type, &value),
      "input '" + kept.name + "'");
  if (status.ok()) inputs_.push_back(value);
  return status;
}

void Run::add_output(const std::string& name) {
  output_names_.push_back(name);
  outputs_.push_back(nullptr);
}

Status Run::run(OrtSession* session) {
  std::vector<const char*> inputs, outputs;
  for (const NodeTensor& tensor : tensors_)
    inputs.push_back(tensor.name.c_str());
  for (const std::string& name : output_names_) outputs.push_back(name.c_str());
  return library_.status(
      library_.call.Run(session, nullptr, inputs.data(), inputs_.data(),
                        inputs_.size(), outputs.data(), outputs.size(),
                        outputs_.data()),
      "Run");
}

Result<OutputTensor> Run::output(std::size_t index) const {
  const Functions& call = library_.call;
  const std::string what = "output '" + output_names_[index] + "'";
  OrtValue* value = outputs_[index];
  int is_tensor = 0;
  if (value != nullptr)
    if (Status status = library_.status(call.IsTensor(value, &is_tensor), what);
        !status.ok())
      return status;
  if (is_tensor == 0)
    return Status{StatusCode::kEngineFailure, what + " is no tensor"};
  OrtTensorTypeAndShapeInfo* info = nullptr;
  Status status =
      library_.status(call.GetTensorTypeAndShape(value, &info), what);
  if (!status.ok()) return status;
  OutputTensor tensor;
  std::size_t rank = 0;
  status = library_.status(call.GetTensorElementType(info, &tensor.type), what);
  if (status.ok())
    status = library_.status(call.GetDimensionsCount(info, &rank), what);
  tensor.dims.resize(rank);
  if (status.ok())
    status = library_.status(call.GetDimensions(info, tensor.dims.data(), rank),
                             what);
  call.ReleaseTensorTypeAndShapeInfo(info);
  void* data = nullptr;
  if (status.ok())
    status = library_.status(call.GetTensorMutableData(value, &data), what);
  if (!status.ok()) return status;
  tensor.data = static_cast<const std::byte*>(data);
  return tensor;
}

NodeTensor numbers_tensor(const std::string& name, int type,
                          std::vector<std::int64_t> dims,
                          const std::vector<std::int64_t>& values) {
  NodeTensor tensor{name, type, std::move(dims), {}};
  tensor.bytes.reserve(values.size() * element_size(type));
  for (std::int64_t value : values) switch (type) {
      case kInt64:
        append(tensor.bytes, value);
        break;
      case kInt32:
        append(tensor.bytes, static_cast<std::int32_t>(value));
        break;
      case kBool:
        append(tensor.bytes, static_cast<std::uint8_t>(value != 0));
        break;
      case kFloat16:
        append(tensor.bytes, fp16_bits(static_cast<double>(value)));
        break;
      default:
        append(tensor.bytes, static_cast<float>(value));
    }
  return tensor;
}

void read_floats(int type, const std::byte* from, std::size_t count,
                 float* to) {
  if (type == kFloat) {
    std::memcpy(to, from, count * sizeof(float));
    return;
  }
  const auto size = static_cast<std::int64_t>(count);
  std::vector<double> wide(count);
  decode(real_type(type), from, 1, size, wide.data());
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<float>(wide[i]);
}

}  // namespace attnguard::onnxruntime
