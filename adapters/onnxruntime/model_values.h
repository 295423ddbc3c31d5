// Tensors of one run of a model: those that go in, and those that ONNX Runtime
// allocates and gives back.
#ifndef ATTNGUARD_ADAPTERS_ONNXRUNTIME_MODEL_VALUES_H_
#define ATTNGUARD_ADAPTERS_ONNXRUNTIME_MODEL_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "adapters/onnxruntime/library.h"
#include "adapters/onnxruntime/node.h"

namespace attnguard::onnxruntime {

// A view of what a run gave, valid as long as its Run.
struct OutputTensor {
  int type = 0;
  std::vector<std::int64_t> dims;
  const std::byte* data = nullptr;
};

class Run {
 public:
  explicit Run(const Library& library) : library_(library) {}
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // Keeps the tensor until the end.
  Status add_input(NodeTensor tensor);
  void add_output(const std::string& name);

  // At most once. Fails with ONNX Runtime's own message.
  Status run(OrtSession* session);

  // In the order of add_output, after run().
  Result<OutputTensor> output(std::size_t index) const;

 private:
  const Library& library_;
  std::vector<NodeTensor> tensors_;
  std::vector<std::string> output_names_;
  std::vector<OrtValue*> inputs_, outputs_;
};

// Elements of an integer, flag or real type, each rounded to it.
NodeTensor numbers_tensor(const std::string& name, int type,
                          std::vector<std::int64_t> dims,
                          const std::vector<std::int64_t>& values);

// `count` elements of a real type, as float.
void read_floats(int type, const std::byte* from, std::size_t count, float* to);

}  // namespace attnguard::onnxruntime

#endif  // ATTNGUARD_ADAPTERS_ONNXRUNTIME_MODEL_VALUES_H_
