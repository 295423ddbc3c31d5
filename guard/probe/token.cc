#include "guard/probe/token.h"

#include <memory>
#include <string>

#include "guard/probe/random.h"

namespace attnguard {
namespace {

// The row whose query belongs to the token: the one that sees the token's key
// as its last, if there is one; -1 otherwise.
std::int64_t own_row(const Problem& problem, std::int64_t batch,
                     std::int64_t token) {
  KeyRanges allowed;
  for (std::int64_t i = 0; i < problem.len_q(batch); ++i) {
    problem.mask.allowed(problem.row(batch, i), allowed);
    if (!allowed.empty() && allowed.last() == token) return i;
  }
  return -1;
}

struct TokenPlace {
  std::uint64_t seed = 0;
  std::int64_t batch = 0, head = 0, kv_head = 0, token = 0, row = -1;
  std::int64_t owner = 0;  // the entry whose tensors hold the token

  std::uint64_t fresh() const {
    return derive_seed(seed, 0x746f6b656e + static_cast<std::uint64_t>(token));
  }
};

class TokenScores final : public ScorePattern {
 public:
  TokenScores(const Problem& problem, const TokenPlace& place)
      : query_channels_(problem.head_dim_qk),
        key_channels_(problem.score_channels()),
        place_(place) {}

  bool whole_query() const override { return true; }

  std::string name() const override {
    return "token-" + std::to_string(place_.token);
  }
  void query_row(std::int64_t batch, std::int64_t head, std::int64_t q_index,
                 double* to) const override {
    const bool fresh =
        batch == place_.batch && head == place_.head && q_index == place_.row;
    fill_random_row(fresh ? place_.fresh() : place_.seed, TensorRole::kQuery,
                    batch, head, q_index, 1, query_channels_, to);
  }
  void key_row(std::int64_t batch, std::int64_t kv_head, std::int64_t kv_index,
               double* to) const override {
    const bool fresh = batch == place_.owner && kv_head == place_.kv_head &&
                       kv_index == place_.token;
    fill_random_row(fresh ? place_.fresh() : place_.seed, TensorRole::kKey,
                    batch, kv_head, kv_index, 1, key_channels_, to);
  }

 private:
  std::int64_t query_channels_;
  std::int64_t key_channels_;
  TokenPlace place_;
};

class TokenValues final : public ValuePattern {
 public:
  TokenValues(const Problem& problem, const TokenPlace& place)
      : columns_(problem.head_dim_v), place_(place) {}

  std::string name() const override {
    return "token-" + std::to_string(place_.token);
  }
  std::int64_t columns() const override { return columns_; }
  void value_row(std::int64_t batch, std::int64_t kv_head,
                 std::int64_t kv_index, double* to) const override {
    const bool fresh = batch == place_.owner && kv_head == place_.kv_head &&
                       kv_index == place_.token;
    fill_random_row(fresh ? place_.fresh() : place_.seed, TensorRole::kValue,
                    batch, kv_head, kv_index, 1, columns_, to);
  }

 private:
  std::int64_t columns_;
  TokenPlace place_;
};

}  // namespace

OneToken::OneToken(const Problem& problem, std::uint64_t seed,
                   std::int64_t batch, std::int64_t head, std::int64_t token) {
  const TokenPlace place{seed,
                         batch,
                         head,
                         problem.kv_head_of(head),
                         token,
                         own_row(problem, batch, token),
                         problem.owner(batch, token)};
  scores_ = std::make_shared<TokenScores>(problem, place);
  values_ = std::make_shared<TokenValues>(problem, place);
}

}  // namespace attnguard
