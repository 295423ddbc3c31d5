// Decoders of two layers with random weights, as exporters write them, and with
// the mistakes that the checks of whole models are for.
#ifndef ATTNGUARD_TESTS_ADAPTERS_ONNXRUNTIME_TINY_MODEL_H_
#define ATTNGUARD_TESTS_ADAPTERS_ONNXRUNTIME_TINY_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/ci/lint/onnx_builder.h"

namespace attnguard {

struct TinyModel {
  static constexpr std::int64_t kVocabulary = 37, kWidth = 32, kHeads = 4,
                                kHeadDim = 8, kLayers = 2, kPositions = 128;

  enum class Attention {
    kPlain,       // MatMul, Where, Softmax, MatMul
    kGroupQuery,  // com.microsoft GroupQueryAttention
    kOperator,    // ai.onnx Attention of opset 23
  };
  // Of the plain operators.
  enum class Fault { kNone, kNoMask, kQueryAxis, kOffByOne };
  enum class Cache {
    kNone,
    kTwo,     // past_key_values.N.key and .value, present.N.key and .value
    kJoined,  // past_N and present_N, [2, batch, heads, length, channels]
  };

  Attention attention = Attention::kPlain;
  Fault fault = Fault::kNone;
  Cache cache = Cache::kNone;
  std::int64_t kv_heads = 4;
  std::int64_t window = 0;     // Keys that a query sees; 0: all earlier ones.
  bool tied = false;           // The embedding is the output matrix, too.
  bool constant_mask = false;  // A triangle of length x length.
  bool attention_mask = false, position_ids = false;  // Inputs.
  std::int64_t batch = -2, length = -3;  // Of the tokens; negative: any.
  int ids = 7;                           // int64, or 6: int32
  int logits = 1;                        // float, or 10: float16
  std::string tokens_name = "input_ids", logits_name = "logits";
  std::uint64_t seed = 1;

  lint_test::Builder build() const;

  // Writes the model to the tests' folder, and gives its path.
  std::string write(const std::string& name = "tiny.onnx") const;
};

}  // namespace attnguard

#endif  // ATTNGUARD_TESTS_ADAPTERS_ONNXRUNTIME_TINY_MODEL_H_
