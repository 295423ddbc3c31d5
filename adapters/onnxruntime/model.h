// Whole models: a decoder's .onnx file on ONNX Runtime, as tokens to logits.
#ifndef ATTNGUARD_ADAPTERS_ONNXRUNTIME_MODEL_H_
#define ATTNGUARD_ADAPTERS_ONNXRUNTIME_MODEL_H_

#include <map>
#include <string>

#include "guard/base/status.h"
#include "guard/model/model.h"

namespace attnguard {

// Inputs and outputs are found by name, type and shape: the tokens (input_ids,
// int64 or int32 [batch, sequence]), the logits (float or float16 [batch,
// sequence, vocabulary]), attention_mask, position_ids and the like, and cache
// tensors (past_key_values.N.key and present.N.key, past_N and present_N ...).
// With a cache the model is incremental. Fixed batches and lengths are filled
// up.
//
// Options, all of them optional:
//   input, logits, attention_mask, position_ids   names
//   past, present      what the names of cache tensors begin with
//   kv_heads, head_dim numbers that the shapes of cache tensors leave open
//   sequences          most sequences at a time, 4 where the batch is open
//   context            most tokens of one sequence
//   roundoff           fp32, fp16, bf16 or int8: see Model::roundoff; from the
//                      file's own types otherwise
//   optimization       none, basic, extended or all (as ONNX Runtime does)
//   threads, path, version   as of the onnxruntime: engines
//
// kNotFound: no ONNX Runtime here. kIo: no such file. kInvalidArgument: not a
// model, or its inputs are unclear; the message lists them. kUnsupported: a
// cache of a kind that is not known. kEngineFailure: one token does not run.
Result<Model> open_onnx_model(
    const std::string& file, const std::map<std::string, std::string>& options);

}  // namespace attnguard

#endif  // ATTNGUARD_ADAPTERS_ONNXRUNTIME_MODEL_H_
