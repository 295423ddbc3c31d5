// The only file of the room that includes ONNX's headers.
#include "ci/lint/reader.h"

#include <onnx/onnx_pb.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "ci/lint/element.h"

namespace attnguard::lint {
namespace {

namespace fs = std::filesystem;

using Proto = std::shared_ptr<const onnx::ModelProto>;

// 8192 x 8192 and a little: no mask that a file holds is larger, and weights
// are never asked for.
constexpr std::int64_t kMostElements = std::int64_t{1} << 26;

// The bytes of a tensor that lies in a file of its own.
Result<std::string> external_bytes(const onnx::TensorProto& tensor,
                                   const fs::path& folder, std::size_t size) {
  std::string location;
  std::uint64_t offset = 0;
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset")
      offset = std::strtoull(entry.value().c_str(), nullptr, 10);
  }
  const fs::path relative = fs::path(location).lexically_normal();
  // A model must not make us read what lies elsewhere.
  if (location.empty() || relative.is_absolute() || *relative.begin() == "..")
    return invalid_argument("its external file '" + location +
                            "' is not below the model's folder");
  std::ifstream file(folder / relative, std::ios::binary);
  if (!file) return Status{StatusCode::kIo, "cannot open '" + location + "'"};
  std::string bytes(size, '\0');
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(bytes.data(), static_cast<std::streamsize>(size));
  if (static_cast<std::size_t>(file.gcount()) != size)
    return Status{StatusCode::kIo, "'" + location + "' is too short"};
  return bytes;
}

// The values in the fields for each type; empty: the tensor has none.
std::vector<double> typed_values(const onnx::TensorProto& tensor) {
  const int type = tensor.data_type();
  std::vector<double> values;
  const auto copy = [&values](const auto& field) {
    values.assign(field.begin(), field.end());
  };
  if (type == onnx::TensorProto::FLOAT) copy(tensor.float_data());
  if (type == onnx::TensorProto::DOUBLE) copy(tensor.double_data());
  if (type == onnx::TensorProto::INT64) copy(tensor.int64_data());
  if (!values.empty()) return values;
  for (std::int32_t bits : tensor.int32_data())
    values.push_back(type == onnx::TensorProto::FLOAT16
                         ? from_half(static_cast<std::uint16_t>(bits))
                     : type == onnx::TensorProto::BFLOAT16
                         ? from_bfloat(static_cast<std::uint16_t>(bits))
                         : static_cast<double>(bits));
  return values;
}

Result<std::vector<double>> load_values(const onnx::TensorProto& tensor,
                                        const fs::path& folder) {
  const Dims dims(tensor.dims().begin(), tensor.dims().end());
  const auto count = elements_of(dims, kMostElements);
  if (!count)
    return invalid_argument("its shape is negative, or too large for a mask");
  const ElementFormat format = element_format(tensor.data_type());
  if (format.size == 0)
    return unsupported("values of " + type_name(tensor.data_type()) +
                       " are not read");
  const std::size_t size = static_cast<std::size_t>(*count) * format.size;
  std::string outside;
  const std::string* bytes = &tensor.raw_data();
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL) {
    Result<std::string> read = external_bytes(tensor, folder, size);
    if (!read.ok()) return read.status();
    outside = std::move(read.value());
    bytes = &outside;
  } else if (bytes->empty()) {
    std::vector<double> values = typed_values(tensor);
    if (static_cast<std::int64_t>(values.size()) == *count) return values;
    return invalid_argument("it has " + std::to_string(values.size()) +
                            " values where its shape needs " +
                            std::to_string(*count));
  }
  if (bytes->size() != size)
    return invalid_argument("it has " + std::to_string(bytes->size()) +
                            " bytes where its shape and type need " +
                            std::to_string(size));
  std::vector<double> values(static_cast<std::size_t>(*count));
  for (std::int64_t i = 0; i < *count; ++i)
    values[static_cast<std::size_t>(i)] = format.read(bytes->data(), i);
  return values;
}

// `proto` keeps the tensor alive.
Tensor tensor_of(const onnx::TensorProto& tensor, const std::string& name,
                 const Proto& proto, const fs::path& folder) {
  Tensor made{.name = name, .type = tensor.data_type()};
  made.dims.assign(tensor.dims().begin(), tensor.dims().end());
  made.load = [&tensor, proto, folder, name]() -> Result<std::vector<double>> {
    Result<std::vector<double>> values = load_values(tensor, folder);
    if (values.ok()) return values;
    return Status{values.status().code(),
                  "tensor '" + name + "': " + values.status().message()};
  };
  return made;
}

Tensor list_tensor(std::string name, int type, std::vector<double> values,
                   bool scalar) {
  Tensor made{.name = std::move(name), .type = type};
  if (!scalar) made.dims = {static_cast<std::int64_t>(values.size())};
  made.load = [values]() -> Result<std::vector<double>> { return values; };
  return made;
}

class Reader {
 public:
  Reader(Proto proto, const std::string& path)
      : proto_(std::move(proto)),
        folder_(fs::path(path).parent_path()),
        model_(std::make_shared<Model>()) {
    model_->file = path;
  }

  std::shared_ptr<const Model> read() {
    opset_ = opset_of(proto_->opset_import());
    read_graph(proto_->graph(), nullptr);
    for (const onnx::FunctionProto& function : proto_->functions()) {
      opset_ = opset_of(function.opset_import());
      Graph& graph = add(function.name(), nullptr);
      graph.inputs.assign(function.input().begin(), function.input().end());
      graph.outputs.assign(function.output().begin(), function.output().end());
      for (const auto& node : function.node()) read_node(node, graph);
      graph.connect();
    }
    return model_;
  }

 private:
  template <typename Imports>
  static std::int64_t opset_of(const Imports& imports) {
    for (const auto& import : imports)
      if (import.domain().empty() || import.domain() == "ai.onnx")
        return import.version();
    return 1;
  }

  Graph& add(const std::string& name, const Graph* parent) {
    model_->graphs.push_back(std::make_unique<Graph>());
    Graph& graph = *model_->graphs.back();
    graph.name = name;
    graph.parent = parent;
    graph.opset = opset_;
    return graph;
  }

  static void read_type(const onnx::ValueInfoProto& info, Graph& graph) {
    if (!info.type().has_tensor_type()) return;
    const auto& tensor = info.type().tensor_type();
    ValueType type{.type = tensor.elem_type()};
    if (tensor.has_shape()) {
      type.dims.emplace();
      for (const auto& dim : tensor.shape().dim())
        type.dims->push_back(dim.has_dim_value() ? dim.dim_value() : -1);
    }
    graph.types.emplace(info.name(), std::move(type));
  }

  void read_graph(const onnx::GraphProto& proto, const Graph* parent) {
    Graph& graph = add(proto.name(), parent);
    for (const auto& tensor : proto.initializer())
      graph.constants.emplace(
          tensor.name(), tensor_of(tensor, tensor.name(), proto_, folder_));
    for (const auto& input : proto.input()) {
      read_type(input, graph);
      if (!graph.constants.contains(input.name()))
        graph.inputs.push_back(input.name());
    }
    for (const auto& output : proto.output()) {
      read_type(output, graph);
      graph.outputs.push_back(output.name());
    }
    for (const auto& info : proto.value_info()) read_type(info, graph);
    for (const auto& node : proto.node()) read_node(node, graph);
    graph.connect();
  }

  void read_node(const onnx::NodeProto& proto, Graph& graph) {
    if (proto.op_type() == "Constant" && proto.output_size() > 0 &&
        read_constant(proto, graph))
      return;
    auto node = std::make_unique<Node>();
    node->op = proto.op_type();
    node->domain = proto.domain() == "ai.onnx" ? "" : proto.domain();
    node->inputs.assign(proto.input().begin(), proto.input().end());
    node->outputs.assign(proto.output().begin(), proto.output().end());
    node->name = !proto.name().empty() ? proto.name()
                                       : node->op + " -> " + node->output(0);
    for (const auto& attribute : proto.attribute()) {
      node->attributes.emplace(attribute.name(), attribute_of(attribute));
      if (attribute.has_g()) read_graph(attribute.g(), &graph);
      for (const auto& body : attribute.graphs()) read_graph(body, &graph);
    }
    graph.nodes.push_back(std::move(node));
  }

  Attribute attribute_of(const onnx::AttributeProto& proto) const {
    Attribute made;
    if (proto.has_i()) made.integer = proto.i();
    if (proto.has_f()) made.number = proto.f();
    made.text = proto.s();
    made.integers.assign(proto.ints().begin(), proto.ints().end());
    if (proto.has_t())
      made.tensor = std::make_shared<const Tensor>(
          tensor_of(proto.t(), proto.name(), proto_, folder_));
    return made;
  }

  bool read_constant(const onnx::NodeProto& proto, Graph& graph) const {
    const std::string& name = proto.output(0);
    for (const auto& attribute : proto.attribute()) {
      const std::string& kind = attribute.name();
      if (kind == "value" && attribute.has_t())
        graph.constants.emplace(
            name, tensor_of(attribute.t(), name, proto_, folder_));
      else if (kind == "value_float")
        graph.constants.emplace(
            name, list_tensor(name, kFloat, {attribute.f()}, true));
      else if (kind == "value_int")
        graph.constants.emplace(
            name, list_tensor(name, kInt64,
                              {static_cast<double>(attribute.i())}, true));
      else if (kind == "value_floats")
        graph.constants.emplace(name, list_tensor(name, kFloat,
                                                  {attribute.floats().begin(),
                                                   attribute.floats().end()},
                                                  false));
      else if (kind == "value_ints")
        graph.constants.emplace(name, list_tensor(name, kInt64,
                                                  {attribute.ints().begin(),
                                                   attribute.ints().end()},
                                                  false));
    }
    return graph.constants.contains(name);
  }

  Proto proto_;
  fs::path folder_;
  std::shared_ptr<Model> model_;
  std::int64_t opset_ = 1;
};

}  // namespace

bool has_reader() { return true; }

Result<std::shared_ptr<const Model>> read_model(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error))
    return Status{StatusCode::kIo, path + ": is a folder, not an ONNX file"};
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return Status{StatusCode::kNotFound, path + ": " + std::strerror(errno)};
  auto proto = std::make_shared<onnx::ModelProto>();
  // Lite and full protobuf alike refuse nesting beyond 100 messages, so that
  // a file cannot exhaust the stack.
  if (!proto->ParsePartialFromIstream(&file))
    return invalid_argument(
        path +
        ": not an ONNX model, or cut off: its protobuf message does "
        "not parse");
  if (!proto->has_graph())
    return invalid_argument(path + ": not an ONNX model: it holds no graph");
  if (proto->opset_import().empty() && proto->ir_version() >= 3)
    return invalid_argument(path +
                            ": broken ONNX model: it imports no operator set");
  return Reader(std::move(proto), path).read();
}

}  // namespace attnguard::lint
