// How coarsely a model file computes, by the types that it names.
#ifndef ATTNGUARD_ADAPTERS_ONNXRUNTIME_MODEL_PRECISION_H_
#define ATTNGUARD_ADAPTERS_ONNXRUNTIME_MODEL_PRECISION_H_

#include <string>

namespace attnguard::onnxruntime {

// The unit roundoff of the least precise numbers that the graph, its branches
// and its functions pass on: 2^-8 for bfloat16 and for activations in 8 bits,
// 2^-11 for float16, otherwise 2^-24. Weights that are stored in fewer bits do
// not count: they are the same in every run. A file that cannot be parsed
// here (above 2 GB) counts as 2^-24.
double model_roundoff(const std::string& file);

}  // namespace attnguard::onnxruntime

#endif  // ATTNGUARD_ADAPTERS_ONNXRUNTIME_MODEL_PRECISION_H_
