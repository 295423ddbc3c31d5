#include "tests/ci/lint/onnx_builder.h"

#include <onnx/onnx_pb.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace attnguard::lint_test {
namespace {

template <typename T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Normal halves, zero and infinity.
std::uint16_t half_of(double value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::abs(value);
  if (size == 0) return sign;
  if (size >= 65520) return sign | 0x7c00;
  int exponent = 0;
  const double fraction = std::frexp(size, &exponent);  // 0.5 ... 1
  const auto bits = static_cast<int>(std::lround(fraction * 2048)) - 1024;
  return static_cast<std::uint16_t>(sign | (((exponent + 14) << 10) + bits));
}

void fill(onnx::TensorProto& tensor, const Dims& dims,
          const std::vector<double>& values, int type) {
  tensor.set_data_type(type);
  for (std::int64_t dim : dims) tensor.add_dims(dim);
  std::string bytes;
  for (double value : values) {
    if (type == kFloat) append(bytes, static_cast<float>(value));
    if (type == kInt64) append(bytes, static_cast<std::int64_t>(value));
    if (type == kBool) append(bytes, static_cast<char>(value != 0));
    if (type == kHalf) append(bytes, half_of(value));
  }
  tensor.set_raw_data(bytes);
}

void describe(onnx::ValueInfoProto& info, const std::string& name,
              const Dims& dims, int type) {
  info.set_name(name);
  auto& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  tensor.mutable_shape();
  for (std::int64_t dim : dims) {
    auto& made = *tensor.mutable_shape()->add_dim();
    if (dim >= 0) made.set_dim_value(dim);
    if (dim < 0)
      made.set_dim_param(dim == -1 ? "n" : "n" + std::to_string(-dim));
  }
}

}  // namespace

struct Builder::State {
  onnx::ModelProto model;
  int values = 0;
  onnx::GraphProto& graph() { return *model.mutable_graph(); }
  Value fresh() { return "v" + std::to_string(values++); }
  onnx::TensorProto& tensor(const Value& name) {
    for (auto& tensor : *graph().mutable_initializer())
      if (tensor.name() == name) return tensor;
    return *graph().add_initializer();
  }
};

Builder::Builder(int opset) : state_(std::make_unique<State>()) {
  state_->model.set_ir_version(8);
  auto* import = state_->model.add_opset_import();
  import->set_domain("");
  import->set_version(opset);
  state_->graph().set_name("main");
}
Builder::Builder(Builder&&) = default;
Builder::~Builder() = default;

void Builder::import_domain(const std::string& domain) {
  auto* import = state_->model.add_opset_import();
  import->set_domain(domain);
  import->set_version(1);
}

Value Builder::input(const std::string& name, const Dims& dims, int type) {
  describe(*state_->graph().add_input(), name, dims, type);
  return name;
}

void Builder::output(const Value& value) {
  state_->graph().add_output()->set_name(value);
}

void Builder::output(const Value& value, const std::string& name,
                     const Dims& dims, int type) {
  auto& node = *state_->graph().add_node();
  node.set_op_type("Identity");
  node.set_name("Identity_" + name);
  node.add_input(value);
  node.add_output(name);
  describe(*state_->graph().add_output(), name, dims, type);
}

Value Builder::constant(const Dims& dims, const std::vector<double>& values,
                        int type, const std::string& name) {
  auto& tensor = *state_->graph().add_initializer();
  tensor.set_name(name.empty() ? state_->fresh() : name);
  fill(tensor, dims, values, type);
  return tensor.name();
}

Value Builder::constant_node(const Dims& dims,
                             const std::vector<double>& values, int type) {
  auto& node = *state_->graph().add_node();
  node.set_op_type("Constant");
  node.add_output(state_->fresh());
  auto& attribute = *node.add_attribute();
  attribute.set_name("value");
  attribute.set_type(onnx::AttributeProto::TENSOR);
  fill(*attribute.mutable_t(), dims, values, type);
  return node.output(0);
}

Value Builder::op(const std::string& type, const std::vector<Value>& inputs,
                  const Attributes& attributes, const std::string& name,
                  const std::string& domain) {
  auto& node = *state_->graph().add_node();
  node.set_op_type(type);
  node.set_domain(domain);
  for (const Value& input : inputs) node.add_input(input);
  node.add_output(state_->fresh());
  node.set_name(name.empty() ? type + "_" + node.output(0) : name);
  for (const auto& [key, value] : attributes) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(key);
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
      attribute.set_type(onnx::AttributeProto::INT);
      attribute.set_i(*number);
    } else if (const auto* real = std::get_if<double>(&value)) {
      attribute.set_type(onnx::AttributeProto::FLOAT);
      attribute.set_f(static_cast<float>(*real));
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      attribute.set_type(onnx::AttributeProto::STRING);
      attribute.set_s(*text);
    } else {
      attribute.set_type(onnx::AttributeProto::INTS);
      for (std::int64_t item : std::get<Dims>(value)) attribute.add_ints(item);
    }
  }
  return node.output(0);
}

std::vector<Value> Builder::op_outputs(const std::string& type,
                                       const std::vector<Value>& inputs,
                                       std::size_t count,
                                       const Attributes& attributes,
                                       const std::string& domain) {
  std::vector<Value> outputs = {op(type, inputs, attributes, "", domain)};
  auto& nodes = *state_->graph().mutable_node();
  onnx::NodeProto& node = *nodes.Mutable(nodes.size() - 1);
  while (outputs.size() < count) {
    outputs.push_back(state_->fresh());
    node.add_output(outputs.back());
  }
  return outputs;
}

void Builder::wrap_in_if(const Value& result) {
  onnx::GraphProto body;
  body.set_name("then");
  body.mutable_node()->Swap(state_->graph().mutable_node());
  body.mutable_initializer()->Swap(state_->graph().mutable_initializer());
  body.add_output()->set_name(result);
  const Value condition = constant({}, {1}, kBool);
  const Value made = op("If", {condition});
  auto& node = *state_->graph().mutable_node(0);
  for (const char* branch : {"then_branch", "else_branch"}) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(branch);
    attribute.set_type(onnx::AttributeProto::GRAPH);
    if (std::string(branch) == "then_branch") *attribute.mutable_g() = body;
    attribute.mutable_g();
  }
  output(made);
}

void Builder::make_external(const Value& value, const std::string& location) {
  auto& tensor = state_->tensor(value);
  tensor.clear_raw_data();
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  auto& entry = *tensor.add_external_data();
  entry.set_key("location");
  entry.set_value(location);
}

void Builder::corrupt(const Value& value, std::size_t bytes) {
  auto& tensor = state_->tensor(value);
  tensor.set_raw_data(tensor.raw_data().substr(0, bytes));
}

std::string Builder::bytes() const { return state_->model.SerializeAsString(); }

std::string Builder::write(const std::string& name) const {
  return write_file(name, bytes());
}

namespace {

struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() /
      ("attnguard_lint_test_" + std::to_string(getpid()));
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

}  // namespace

std::string temporary_folder() {
  static const Folder folder;  // Removed when the tests end.
  return folder.path.string();
}

std::string write_file(const std::string& name, const std::string& bytes) {
  const std::string path = temporary_folder() + "/" + name;
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

}  // namespace attnguard::lint_test
