// What the process of the guard and that of an engine tell each other.
//
//   worker -> parent   Hello, once: the engine, or why there is none
//   parent -> worker   Request   ->  Reply
//
// Tensors lie in the shared memory; messages say where.
#ifndef ATTNGUARD_CI_ISOLATE_MESSAGES_H_
#define ATTNGUARD_CI_ISOLATE_MESSAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ci/isolate/shared_memory.h"
#include "guard/base/status.h"
#include "guard/base/tensor_view.h"
#include "guard/engine/engine.h"

namespace attnguard {

struct Hello {
  StatusCode code = StatusCode::kOk;  // Of opening the engine.
  std::string message;

  std::string name, description;
  std::vector<Dtype> dtypes;
  std::vector<Feature> features;
  bool deterministic = true;
  bool has_numerics = false, has_unsupported = false, has_append = false;
};

enum class Ask { kRun, kAppend, kNumerics, kUnsupported };

// A tensor in the shared memory. Offsets are bytes from its start; -1: absent.
struct SharedView {
  std::int64_t offset = -1;
  Dtype dtype = Dtype::kFp32;
  Shape4 shape = {0, 0, 0, 0};
  Shape4 strides = {0, 0, 0, 0};
  bool has_tokens = false;  // The map that place_tensor gives for its role.
};

struct Request {
  Ask ask = Ask::kRun;
  std::int64_t threads = 1;  // Of OpenMP.

  // The worker remembers problems by number. A text defines the number anew.
  std::int64_t problem = 0;
  std::string problem_text;

  // All blocks that the call may touch.
  std::vector<SharedBlock> ranges;

  SharedView query, key, value, output;  // Of an append: key and value alone,
  SharedView new_key, new_value;         // with these.
  SharedView softmax_lse, weights;
  std::int64_t num_new = 0;
  MaskForm mask_form = MaskForm::kImplied;
  std::int64_t mask = -1, cu_seqlens_q = -1, cu_seqlens_kv = -1;
  std::int64_t block_table = -1, block_table_width = 0;
};

struct Reply {
  enum class Outcome {
    kStatus,
    kException,       // std::exception; `text` is what() of it
    kOtherException,  // something else was thrown
  } outcome = Outcome::kStatus;
  StatusCode code = StatusCode::kOk;
  std::string text;  // The status' message, or why a problem is unsupported.
  Numerics numerics;
};

std::string encode(const Hello& hello);
std::string encode(const Request& request);
std::string encode(const Reply& reply);

// False when the bytes are not such a message, or a value is none of its type.
bool decode(const std::string& bytes, Hello& hello);
bool decode(const std::string& bytes, Request& request);
bool decode(const std::string& bytes, Reply& reply);

}  // namespace attnguard

#endif  // ATTNGUARD_CI_ISOLATE_MESSAGES_H_
