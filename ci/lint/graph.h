// An ONNX model as the rules see it: plain structs, read once by reader.cc,
// which is the only file that knows ONNX's own classes.
#ifndef ATTNGUARD_CI_LINT_GRAPH_H_
#define ATTNGUARD_CI_LINT_GRAPH_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "guard/base/status.h"

namespace attnguard::lint {

// ONNX's numbers of element types; others are kept as they come.
constexpr int kFloat = 1, kInt32 = 6, kInt64 = 7, kBool = 9, kHalf = 10,
              kDouble = 11, kBfloat16 = 16;

// "fp16"; "type 23" for what is none of ours.
std::string type_name(int type);

// The lowest finite value of a floating type; 0 for any other type.
double lowest_of(int type);

// The value as the type holds it; halves overflow to infinity.
double as_type(double value, int type);

using Dims = std::vector<std::int64_t>;  // -1: not known.

// The number of elements; nullopt: negative, or more than `most`.
std::optional<std::int64_t> elements_of(const Dims& dims, std::int64_t most);

struct Tensor {
  std::string name;
  int type = 0;
  Dims dims;

  // Reads the values, one per element; a failure names the tensor and why.
  std::function<Result<std::vector<double>>()> load;
};

struct Attribute {
  std::optional<std::int64_t> integer;
  std::optional<double> number;
  std::string text;
  std::vector<std::int64_t> integers;
  std::shared_ptr<const Tensor> tensor;
};

struct Graph;

struct Node {
  std::string name;  // The node's own, or "Softmax -> output" without one.
  std::string op;
  std::string domain;               // "" is ai.onnx.
  std::vector<std::string> inputs;  // "": an optional one that is left out.
  std::vector<std::string> outputs;
  std::map<std::string, Attribute> attributes;
  const Graph* graph = nullptr;

  // "" when there are fewer.
  const std::string& input(std::size_t index) const;
  const std::string& output(std::size_t index) const;
  std::optional<std::int64_t> integer(const std::string& attribute) const;
  bool is(std::string_view op_type) const { return op == op_type; }
  bool is_any(std::initializer_list<std::string_view> ops) const;
};

struct ValueType {
  int type = 0;
  std::optional<Dims> dims;  // nullopt: not even the rank is known.
};

// A graph, the body of an If or Loop, or a function of the model.
struct Graph {
  std::string name;
  const Graph* parent = nullptr;  // Whose values the body may use.
  std::int64_t opset = 0;         // Of ai.onnx.
  std::vector<std::unique_ptr<Node>> nodes;
  std::map<std::string, Tensor> constants;  // Initialisers, Constant nodes.
  std::map<std::string, ValueType> types;
  std::vector<std::string> inputs, outputs;  // Inputs without initialisers.

  std::map<std::string, const Node*> producers;
  std::map<std::string, std::vector<const Node*>> consumers;

  // Fills the two maps above; a name made twice belongs to the first node.
  void connect();

  // Each looks in the outer graphs too, and gives null when there is none.
  const Node* producer(const std::string& value) const;
  const Tensor* constant(const std::string& value) const;
  const ValueType* type(const std::string& value) const;
  bool is_input(const std::string& value) const;

  // The graph that makes the value; this one when none does.
  const Graph* owner(const std::string& value) const;
};

struct Model {
  std::string file;
  std::vector<std::unique_ptr<Graph>> graphs;  // The first one is the main.
  std::vector<std::string> notes;              // What could not be read.
};

// True when nothing but constants goes into the value.
bool is_constant(const Graph& graph, const std::string& value);

// All nodes that the value depends on, itself included; ends on cycles too.
std::set<const Node*> ancestors(const Graph& graph, const std::string& value);

}  // namespace attnguard::lint

#endif  // ATTNGUARD_CI_LINT_GRAPH_H_
