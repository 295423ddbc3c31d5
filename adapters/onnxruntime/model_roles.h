// What each input and output of a decoder's file is for, found by name, type
// and shape, or told by the user.
#ifndef ATTNGUARD_ADAPTERS_ONNXRUNTIME_MODEL_ROLES_H_
#define ATTNGUARD_ADAPTERS_ONNXRUNTIME_MODEL_ROLES_H_

#include <map>
#include <string>
#include <vector>

#include "adapters/onnxruntime/model_ports.h"

namespace attnguard::onnxruntime {

// Inputs beside the tokens and the cache. n: sequences of the run, P: tokens
// in the cache, S: new tokens.
enum class Role {
  kAttentionMask,   // [n, P + S], 1 where there is a token.
  kPositionIds,     // [n, S], [S] or [axes, n, S]: P ... P + S - 1
  kCachePosition,   // [S]: P ... P + S - 1
  kTokenTypes,      // [n, S]: 0
  kPastLength,      // [] or [1]: P
  kTotalLength,     // [] or [1]: P + S
  kLastKey,         // [n]: P + S - 1, the seqlens_k of GroupQueryAttention
  kUseCacheBranch,  // [1]: whether P > 0
};

struct SideInput {
  Role role;
  Port port;
};

// A cache input and the output that replaces it.
struct CacheTensor {
  Port past, present;
  std::size_t batch_axis = 0, length_axis = 2;
  std::vector<std::int64_t> dims;  // With 1 for the batch and 0 for the length.
};

struct Roles {
  Port tokens, logits;
  std::vector<SideInput> sides;
  std::vector<CacheTensor> cache;  // Empty: a model without a cache.
};

// `options`: input, logits, attention_mask, position_ids (names), past and
// present (what the names of cache tensors begin with), kv_heads and head_dim
// (lengths that the file leaves open); those that are not given are found.
// kInvalidArgument: something is unclear; the message lists what the model
// has. kUnsupported: a kind of cache that is not known here.
Result<Roles> find_roles(const Ports& ports,
                         const std::map<std::string, std::string>& options);

}  // namespace attnguard::onnxruntime

#endif  // ATTNGUARD_ADAPTERS_ONNXRUNTIME_MODEL_ROLES_H_
