// The influence map of a whole model: which tokens move which logits.
#ifndef ATTNGUARD_GUARD_MODEL_TOKEN_MAP_H_
#define ATTNGUARD_GUARD_MODEL_TOKEN_MAP_H_

#include "guard/finding/result.h"
#include "guard/model/model_check.h"

namespace attnguard {

// Changes each of the first `size` tokens in turn; row t of the map is the
// logits of token t. One run of the text per column and one more.
Result<InfluenceMap> token_map(ModelCheckContext& context, std::int64_t size,
                               bool token_by_token);

// The map of the fewest tokens that shows something wrong, in one pass and,
// with a cache, token by token; of 8 tokens in one pass when nothing does.
Result<InfluenceMap> smallest_token_map(ModelCheckContext& context);

bool is_wrong(const InfluenceMap& map);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_MODEL_TOKEN_MAP_H_
