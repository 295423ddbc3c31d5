#include "guard/diagnosis/further_problems.h"

#include <algorithm>
#include <string>

namespace attnguard {
namespace {

class ProblemCollector {
 public:
  void add(Problem problem) {
    if (problem.validate().ok() &&
        std::find(found_.begin(), found_.end(), problem) == found_.end())
      found_.push_back(std::move(problem));
  }

  // As far as the problem's mask fits the changed one.
  void add_relative(Problem problem) {
    problem.query_strides.reset();
    problem.key_strides.reset();
    problem.value_strides.reset();
    problem.output_strides.reset();
    problem.mask = problem.mask.shrunk_to(problem);
    add(std::move(problem));
  }

  std::vector<Problem> take() { return std::move(found_); }

 private:
  std::vector<Problem> found_;
};

// The line'th problem of the defect, or empty.
std::string_view line_of(const Defect& defect, std::size_t line) {
  return line < defect.shows_on.size() ? defect.shows_on[line]
                                       : defect.hides_on;
}

// The problem as the engine takes it, if there is a way.
Problem adapted(const Engine& engine, const Problem& failing,
                const Problem& problem) {
  Problem other = problem;
  if (unsupported_reason(engine, other).empty()) return other;
  other.dtype = failing.dtype;
  other.out_dtype = failing.out_dtype;
  other.layout = failing.layout;
  if (unsupported_reason(engine, other).empty()) return other;
  other.mask = failing.mask.shrunk_to(other);
  if (other.validate().ok() && unsupported_reason(engine, other).empty())
    return other;
  return problem;
}

void add_relatives(const Problem& failing, ProblemCollector& collector) {
  Problem small = failing;  // The same kind of problem at a usual size.
  small.head_dim_qk = std::min<std::int64_t>(failing.head_dim_qk, 16);
  small.head_dim_v = std::min<std::int64_t>(failing.head_dim_v, 16);
  const auto with = [&](std::int64_t batch, std::int64_t heads,
                        std::int64_t kv_heads, std::vector<std::int64_t> len_q,
                        std::vector<std::int64_t> len_kv) {
    Problem problem = small;
    problem.batch = batch;
    problem.num_heads = heads;
    problem.num_kv_heads = kv_heads;
    problem.seq_len_q = std::move(len_q);
    problem.seq_len_kv = std::move(len_kv);
    collector.add_relative(std::move(problem));
  };
  with(1, 1, 1, {24}, {24});
  with(1, 1, 1, {80}, {80});
  with(1, 1, 1, {8}, {40});
  with(1, 1, 1, {1}, {24});
  with(1, 6, 2, {24}, {24});
  with(1, 4, 4, {24}, {24});
  with(3, 2, 1, {8}, {24, 15, 21});
  with(2, 2, 2, {9, 3}, {40, 21});
  with(5, 1, 1, {8}, {8});
  with(1, 1, 1, {40}, {30});
  with(2, 1, 1, {8}, {64});
  with(1, 1, 1, {8}, {100});
  with(1, 1, 1, {300}, {300});
  small.softmax_scale = 0.5;
  with(1, 1, 1, {24}, {24});
  small.softmax_scale = failing.softmax_scale;
  small.head_dim_qk = 40;
  with(1, 1, 1, {24}, {24});
  small.head_dim_qk = 20;
  small.head_dim_v = 40;
  with(1, 2, 2, {24}, {24});
}

}  // namespace

std::vector<Problem> further_problems(
    const Engine& engine, const Problem& failing,
    const std::vector<const Defect*>& defects) {
  ProblemCollector collector;
  const std::size_t lines = Defect{}.shows_on.size() + 1;
  for (std::size_t line = 0; line < lines; ++line)
    for (const Defect* defect : defects) {
      const std::string_view text = line_of(*defect, line);
      if (text.empty()) continue;
      const Result<Problem> problem = Problem::parse(text);
      if (problem.ok())
        collector.add(adapted(engine, failing, problem.value()));
    }
  add_relatives(failing, collector);
  return collector.take();
}

}  // namespace attnguard
