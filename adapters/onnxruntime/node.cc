#include "adapters/onnxruntime/node.h"

#include <onnx/onnx_pb.h>

namespace attnguard::onnxruntime {
namespace {

constexpr std::int64_t kIrVersion = 10;

void describe(const NodeTensor& tensor, onnx::ValueInfoProto& info) {
  info.set_name(tensor.name);
  auto& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(tensor.type);
  for (std::int64_t dim : tensor.dims)
    type.mutable_shape()->add_dim()->set_dim_value(dim);
  type.mutable_shape();  // A scalar has a shape too.
}

void add_attribute(const NodeAttribute& attribute, onnx::NodeProto& node) {
  onnx::AttributeProto& proto = *node.add_attribute();
  proto.set_name(attribute.name);
  if (const auto* number = std::get_if<std::int64_t>(&attribute.value)) {
    proto.set_type(onnx::AttributeProto::INT);
    proto.set_i(*number);
  } else {
    proto.set_type(onnx::AttributeProto::FLOAT);
    proto.set_f(std::get<float>(attribute.value));
  }
}

}  // namespace

std::string serialize_model(const NodeCall& call) {
  onnx::ModelProto model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("attnguard");
  onnx::OperatorSetIdProto* opset = model.add_opset_import();
  opset->set_domain("");
  opset->set_version(call.opset);
  if (!call.domain.empty()) {
    opset = model.add_opset_import();
    opset->set_domain(call.domain);
    opset->set_version(1);
  }
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("attention");
  onnx::NodeProto& node = *graph.add_node();
  node.set_name("attention");
  node.set_op_type(call.op);
  node.set_domain(call.domain);
  for (const NodeAttribute& attribute : call.attributes)
    add_attribute(attribute, node);
  for (const NodeTensor& input : call.inputs) {
    node.add_input(input.name);
    if (!input.name.empty()) describe(input, *graph.add_input());
  }
  for (const NodeTensor& output : call.outputs) {
    node.add_output(output.name);
    if (!output.name.empty()) describe(output, *graph.add_output());
  }
  return model.SerializeAsString();
}

}  // namespace attnguard::onnxruntime
