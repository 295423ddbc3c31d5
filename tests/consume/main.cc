// A user's program: guards a kernel of its own, given as a lambda. Ends with 0
// when the library passes the correct kernel and catches the leaking one.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "guard/base/version.h"
#include "guard/pipeline.h"

namespace {

using attnguard::AttentionCall;
using attnguard::Problem;

// Plain causal attention (row i sees keys 0 ... i) in fp64; `extra` keys more
// are visible to each row than should be.
void causal_attention(const AttentionCall& call, std::int64_t extra) {
  const Problem& problem = *call.problem;
  const std::int64_t dim_qk = problem.head_dim_qk;
  const std::int64_t dim_v = problem.head_dim_v;
  std::vector<double> query(dim_qk), key(dim_qk), value(dim_v), out(dim_v);
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t h = 0; h < problem.num_heads; ++h) {
      const std::int64_t g = problem.kv_head_of(h);
      for (std::int64_t i = 0; i < problem.len_q(b); ++i) {
        const std::int64_t end = std::min(problem.len_kv(b), i + 1 + extra);
        std::vector<double> scores(end);
        call.query.load_row(b, h, i, 0, dim_qk, query.data());
        for (std::int64_t j = 0; j < end; ++j) {
          call.key.load_row(b, g, j, 0, dim_qk, key.data());
          for (std::int64_t c = 0; c < dim_qk; ++c) {
            scores[j] += problem.scale() * query[c] * key[c];
          }
        }
        const double top = *std::max_element(scores.begin(), scores.end());
        double sum = 0;
        std::fill(out.begin(), out.end(), 0.0);
        for (std::int64_t j = 0; j < end; ++j) {
          const double weight = std::exp(scores[j] - top);
          sum += weight;
          call.value.load_row(b, g, j, 0, dim_v, value.data());
          for (std::int64_t c = 0; c < dim_v; ++c) out[c] += weight * value[c];
        }
        for (double& channel : out) channel /= sum;
        call.output.store_row(b, h, i, 0, dim_v, out.data());
      }
    }
  }
}

attnguard::Engine engine(const char* name, std::int64_t extra) {
  attnguard::Engine engine;
  engine.name = name;
  // Some checks run parts of a problem, which may have masks of their own.
  engine.capabilities.unsupported = [](const Problem& problem) {
    return problem.mask.text() == "causal_top_left" ? "" : "another mask";
  };
  engine.run = [extra](const AttentionCall& call) {
    causal_attention(call, extra);
    return attnguard::ok_status();
  };
  return engine;
}

}  // namespace

int main() {
  const auto problem = Problem::parse(
      "batch=2 num_heads=4 num_kv_heads=2 seq_len=9 head_dim=16 dtype=fp32 "
      "mask=causal_top_left");
  if (!problem.ok()) {
    std::printf("%s\n", problem.status().message().c_str());
    return 1;
  }
  const attnguard::Settings settings;
  const auto right =
      attnguard::verify_problem(engine("right", 0), problem.value(), settings);
  const auto leaks =
      attnguard::verify_problem(engine("leaks", 1), problem.value(), settings);
  std::printf("attnguard %.*s: exit codes %d and %d, expected 0 and 1\n",
              static_cast<int>(attnguard::version_string().size()),
              attnguard::version_string().data(),
              attnguard::exit_code(right.verdict),
              attnguard::exit_code(leaks.verdict));
  return right.verdict == attnguard::Verdict::kPass &&
                 leaks.verdict == attnguard::Verdict::kViolation
             ? 0
             : 1;
}
