// The inputs and outputs of a model file: names, element types and shapes.
#ifndef ATTNGUARD_ADAPTERS_ONNXRUNTIME_MODEL_PORTS_H_
#define ATTNGUARD_ADAPTERS_ONNXRUNTIME_MODEL_PORTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "adapters/onnxruntime/library.h"

namespace attnguard::onnxruntime {

struct Port {
  std::string name;
  int type = 0;                        // As ONNX numbers them; 0: no tensor.
  std::vector<std::int64_t> dims;      // -1: any length.
  std::vector<std::string> dim_names;  // "sequence"; empty without a name.

  // Of the axis; -1 when the rank is lower.
  std::int64_t dim(std::size_t axis) const {
    return axis < dims.size() ? dims[axis] : -1;
  }
};

struct Ports {
  std::vector<Port> inputs, outputs;
};

// Asks a session for them. Fails with ONNX Runtime's own message.
Result<Ports> read_ports(const Library& library, const OrtSession* session);

// "int64"; "type 8" for what has no name here.
std::string type_name(int type);

// Bytes of one element; 0 for types without a fixed size.
std::size_t element_size(int type);

// "input_ids int64 [batch, 16]"
std::string describe(const Port& port);

// All of them, a line each, for messages.
std::string describe(const Ports& ports);

}  // namespace attnguard::onnxruntime

#endif  // ATTNGUARD_ADAPTERS_ONNXRUNTIME_MODEL_PORTS_H_
