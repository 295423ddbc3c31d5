// A model of one node with the tensors of one run.
#ifndef ATTNGUARD_ADAPTERS_ONNXRUNTIME_NODE_H_
#define ATTNGUARD_ADAPTERS_ONNXRUNTIME_NODE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace attnguard::onnxruntime {

// Element types, numbered as ONNX and ONNX Runtime both do.
inline constexpr int kFloat = 1;
inline constexpr int kInt32 = 6;
inline constexpr int kInt64 = 7;
inline constexpr int kBool = 9;
inline constexpr int kFloat16 = 10;
inline constexpr int kDouble = 11;
inline constexpr int kBfloat16 = 16;

struct NodeTensor {
  std::string name;  // Empty: an optional one that is left out.
  int type = kFloat;
  std::vector<std::int64_t> dims;
  std::vector<std::byte> bytes;
};

struct NodeAttribute {
  std::string name;
  std::variant<std::int64_t, float> value;
};

struct NodeCall {
  std::string op;      // "Attention"
  std::string domain;  // Empty: ai.onnx
  int opset = 23;      // of ai.onnx; com.microsoft has 1
  std::vector<NodeAttribute> attributes;
  std::vector<NodeTensor> inputs;
  std::vector<NodeTensor> outputs;
};

// A ModelProto with the dims of the tensors as they are.
std::string serialize_model(const NodeCall& node);

}  // namespace attnguard::onnxruntime

#endif  // ATTNGUARD_ADAPTERS_ONNXRUNTIME_NODE_H_
