#include "adapters/onnxruntime/model_ports.h"

#include <array>

namespace attnguard::onnxruntime {
namespace {

struct ElementType {
  int type;
  const char* name;
  std::size_t size;
};

// TensorProto.DataType.
constexpr std::array<ElementType, 18> kTypes = {{{0, "no tensor", 0},
                                                 {1, "float", 4},
                                                 {2, "uint8", 1},
                                                 {3, "int8", 1},
                                                 {4, "uint16", 2},
                                                 {5, "int16", 2},
                                                 {6, "int32", 4},
                                                 {7, "int64", 8},
                                                 {8, "string", 0},
                                                 {9, "bool", 1},
                                                 {10, "float16", 2},
                                                 {11, "double", 8},
                                                 {12, "uint32", 4},
                                                 {13, "uint64", 8},
                                                 {16, "bfloat16", 2},
                                                 {17, "float8e4m3fn", 1},
                                                 {19, "float8e5m2", 1},
                                                 {20, "float8e5m2fnuz", 1}}};

const ElementType* find_type(int type) {
  for (const ElementType& known : kTypes)
    if (known.type == type) return &known;
  return nullptr;
}

// What inputs and outputs are asked with.
struct Direction {
  OrtStatus* (*count)(const OrtSession*, std::size_t*);
  OrtStatus* (*name)(const OrtSession*, std::size_t, OrtAllocator*, char**);
  OrtStatus* (*info)(const OrtSession*, std::size_t, OrtTypeInfo**);
  const char* what;
};

Status read_shape(const Library& library, const OrtTensorTypeAndShapeInfo* info,
                  Port& port) {
  const Functions& call = library.call;
  std::size_t rank = 0;
  Status status = library.status(call.GetTensorElementType(info, &port.type),
                                 "GetTensorElementType");
  if (status.ok())
    status = library.status(call.GetDimensionsCount(info, &rank),
                            "GetDimensionsCount");
  if (!status.ok() || rank == 0) return status;
  port.dims.resize(rank);
  std::vector<const char*> names(rank, nullptr);
  status = library.status(call.GetDimensions(info, port.dims.data(), rank),
                          "GetDimensions");
  if (status.ok())
    status =
        library.status(call.GetSymbolicDimensions(info, names.data(), rank),
                       "GetSymbolicDimensions");
  for (const char* name : names) port.dim_names.push_back(name ? name : "");
  return status;
}

Status read_type(const Library& library, const OrtTypeInfo* type, Port& port) {
  const OrtTensorTypeAndShapeInfo* info = nullptr;
  Status status =
      library.status(library.call.CastTypeInfoToTensorInfo(type, &info),
                     "CastTypeInfoToTensorInfo");
  if (!status.ok() || info == nullptr) return status;
  return read_shape(library, info, port);
}

Status read_port(const Library& library, const OrtSession* session,
                 const Direction& direction, std::size_t index, Port& port) {
  const Functions& call = library.call;
  OrtAllocator* allocator = nullptr;
  Status status =
      library.status(call.GetAllocatorWithDefaultOptions(&allocator),
                     "GetAllocatorWithDefaultOptions");
  if (!status.ok()) return status;
  char* name = nullptr;
  status = library.status(direction.name(session, index, allocator, &name),
                          direction.what);
  if (!status.ok()) return status;
  port.name = name;
  status = library.status(call.AllocatorFree(allocator, name), "AllocatorFree");
  OrtTypeInfo* type = nullptr;
  if (status.ok())
    status =
        library.status(direction.info(session, index, &type), direction.what);
  if (!status.ok()) return status;
  status = read_type(library, type, port);
  call.ReleaseTypeInfo(type);
  return status;
}

Status read_all(const Library& library, const OrtSession* session,
                const Direction& direction, std::vector<Port>& ports) {
  std::size_t count = 0;
  Status status =
      library.status(direction.count(session, &count), direction.what);
  if (!status.ok()) return status;
  ports.resize(count);
  for (std::size_t i = 0; i < count && status.ok(); ++i)
    status = read_port(library, session, direction, i, ports[i]);
  return status;
}

}  // namespace

Result<Ports> read_ports(const Library& library, const OrtSession* session) {
  const Functions& call = library.call;
  Ports ports;
  Status status = read_all(library, session,
                           {call.SessionGetInputCount, call.SessionGetInputName,
                            call.SessionGetInputTypeInfo, "a model's inputs"},
                           ports.inputs);
  if (status.ok())
    status = read_all(library, session,
                      {call.SessionGetOutputCount, call.SessionGetOutputName,
                       call.SessionGetOutputTypeInfo, "a model's outputs"},
                      ports.outputs);
  if (!status.ok()) return status;
  return ports;
}

std::string type_name(int type) {
  const ElementType* known = find_type(type);
  return known ? known->name : "type " + std::to_string(type);
}

std::size_t element_size(int type) {
  const ElementType* known = find_type(type);
  return known ? known->size : 0;
}

std::string describe(const Port& port) {
  std::string text = port.name + " " + type_name(port.type) + " [";
  for (std::size_t i = 0; i < port.dims.size(); ++i) {
    if (i > 0) text += ", ";
    if (port.dims[i] >= 0)
      text += std::to_string(port.dims[i]);
    else
      text += port.dim_names[i].empty() ? "?" : port.dim_names[i];
  }
  return text + "]";
}

std::string describe(const Ports& ports) {
  std::string text = "  inputs:";
  for (const Port& port : ports.inputs) text += "\n    " + describe(port);
  text += "\n  outputs:";
  for (const Port& port : ports.outputs) text += "\n    " + describe(port);
  return text;
}

}  // namespace attnguard::onnxruntime
