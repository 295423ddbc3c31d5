#include "adapters/onnxruntime/model_precision.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>

namespace attnguard::onnxruntime {
namespace {

constexpr double kEightBits = 0x1p-8, kHalf = 0x1p-11, kSingle = 0x1p-24;
constexpr std::array<std::string_view, 8> kQuantisingOps = {
    "QuantizeLinear",       "DynamicQuantizeLinear",
    "MatMulInteger",        "DynamicQuantizeMatMul",
    "MatMulIntegerToFloat", "QLinearMatMul",
    "QAttention",           "QGemm"};
constexpr std::int64_t kInt8Accuracy = 4;  // accuracy_level of MatMulNBits

double of_type(std::int64_t type) {
  if (type == onnx::TensorProto::BFLOAT16) return kEightBits;
  return type == onnx::TensorProto::FLOAT16 ? kHalf : kSingle;
}

double of_graph(const onnx::GraphProto& graph);

double of_nodes(
    const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) {
  double coarsest = kSingle;
  for (const onnx::NodeProto& node : nodes) {
    if (std::find(kQuantisingOps.begin(), kQuantisingOps.end(),
                  node.op_type()) != kQuantisingOps.end())
      coarsest = std::max(coarsest, kEightBits);
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (node.op_type() == "Cast" && attribute.name() == "to")
        coarsest = std::max(coarsest, of_type(attribute.i()));
      if (node.op_type() == "MatMulNBits" &&
          attribute.name() == "accuracy_level" &&
          attribute.i() == kInt8Accuracy)
        coarsest = std::max(coarsest, kEightBits);
      if (attribute.has_g())
        coarsest = std::max(coarsest, of_graph(attribute.g()));
    }
  }
  return coarsest;
}

// Weights of float16 are multiplied with activations of float16, as operators
// take one type.
double of_graph(const onnx::GraphProto& graph) {
  double coarsest = of_nodes(graph.node());
  for (const onnx::TensorProto& tensor : graph.initializer())
    coarsest = std::max(coarsest, of_type(tensor.data_type()));
  return coarsest;
}

}  // namespace

double model_roundoff(const std::string& file) {
  onnx::ModelProto model;
  std::ifstream stream(file, std::ios::binary);
  if (!model.ParseFromIstream(&stream)) return kSingle;
  double coarsest = of_graph(model.graph());
  for (const onnx::FunctionProto& function : model.functions())
    coarsest = std::max(coarsest, of_nodes(function.node()));
  return coarsest;
}

}  // namespace attnguard::onnxruntime
