#include "guard/probe/slice.h"

#include <utility>

namespace attnguard {
namespace {

class SlicedScores final : public ScorePattern {
 public:
  SlicedScores(const Problem& whole, std::shared_ptr<const Slice> slice,
               ScorePatternPtr scores)
      : whole_(whole), slice_(std::move(slice)), scores_(std::move(scores)) {}

  std::string name() const override {
    return scores_->name() + ", " + slice_->name;
  }
  bool whole_query() const override { return scores_->whole_query(); }
  void query_row(std::int64_t batch, std::int64_t head, std::int64_t q_index,
                 double* to) const override {
    scores_->query_row(
        slice_->whole_batch(batch), head,
        slice_->first_query[static_cast<std::size_t>(batch)] + q_index, to);
  }
  void key_row(std::int64_t batch, std::int64_t kv_head, std::int64_t kv_index,
               double* to) const override {
    scores_->key_row(whole_.owner(slice_->whole_batch(batch), kv_index),
                     kv_head, kv_index, to);
  }

 private:
  const Problem& whole_;
  std::shared_ptr<const Slice> slice_;
  ScorePatternPtr scores_;
};

class SlicedValues final : public ValuePattern {
 public:
  SlicedValues(const Problem& whole, std::shared_ptr<const Slice> slice,
               ValuePatternPtr values)
      : whole_(whole), slice_(std::move(slice)), values_(std::move(values)) {}

  std::string name() const override {
    return values_->name() + ", " + slice_->name;
  }
  std::int64_t columns() const override { return values_->columns(); }
  void value_row(std::int64_t batch, std::int64_t kv_head,
                 std::int64_t kv_index, double* to) const override {
    values_->value_row(whole_.owner(slice_->whole_batch(batch), kv_index),
                       kv_head, kv_index, to);
  }

 private:
  const Problem& whole_;
  std::shared_ptr<const Slice> slice_;
  ValuePatternPtr values_;
};

// The rows of the slice see what they see in the whole, and some row sees
// something.
bool sees_the_same(const Problem& whole, const Slice& slice) {
  KeyRanges there, here;
  bool sees = false;
  for (std::int64_t b = 0; b < slice.problem->batch; ++b)
    for (std::int64_t i = 0; i < slice.problem->len_q(b); ++i) {
      slice.problem->mask.allowed(slice.problem->row(b, i), here);
      whole.mask.allowed(
          whole.row(slice.whole_batch(b),
                    slice.first_query[static_cast<std::size_t>(b)] + i),
          there);
      if (here != there) return false;
      sees |= !here.empty();
    }
  return sees;
}

// The mask with its limits counted from the last token. Where a whole problem
// has as many queries as keys that is the same mask; of its last rows it is
// the only one that is.
Mask aligned_bottom_right(const Mask& mask) {
  std::string text = mask.text();
  for (const auto& [from, to] :
       {std::pair<std::string_view, std::string_view>{"causal_top_left",
                                                      "causal_bottom_right"},
        {"sliding_window_top_left", "sliding_window"}}) {
    const auto at = text.find(from);
    if (at != std::string::npos) text.replace(at, from.size(), to);
  }
  const Result<Mask> aligned = Mask::parse(text);
  return aligned.ok() ? aligned.value() : mask;
}

std::shared_ptr<const Slice> finish(const Problem& whole, Slice slice,
                                    Problem problem) {
  problem.query_strides.reset();
  problem.key_strides.reset();
  problem.value_strides.reset();
  problem.output_strides.reset();
  const Mask mask = problem.mask;
  for (const Mask& candidate : {mask, aligned_bottom_right(mask)}) {
    problem.mask = candidate;
    if (!problem.validate().ok()) continue;
    slice.problem = std::make_shared<const Problem>(problem);
    if (sees_the_same(whole, slice))
      return std::make_shared<const Slice>(std::move(slice));
  }
  return nullptr;
}

}  // namespace

std::shared_ptr<const Slice> slice_tokens(const Problem& whole,
                                          std::string name, std::int64_t drop,
                                          std::int64_t count) {
  Problem problem = whole;
  Slice slice;
  slice.name = std::move(name);
  problem.seq_len_q.clear();
  problem.seq_len_kv.clear();
  for (std::int64_t b = 0; b < whole.batch; ++b) {
    const std::int64_t left = whole.len_q(b) - drop;
    const std::int64_t queries = count < 0 ? left : count;
    if (queries < 1 || queries > left || whole.len_kv(b) <= drop)
      return nullptr;
    problem.seq_len_q.push_back(queries);
    problem.seq_len_kv.push_back(whole.len_kv(b) - drop);
    slice.first_query.push_back(left - queries);
  }
  return finish(whole, std::move(slice), std::move(problem));
}

std::shared_ptr<const Slice> slice_entry(const Problem& whole,
                                         std::int64_t entry) {
  Problem problem = whole;
  Slice slice;
  slice.name = "batch entry " + std::to_string(entry) + " alone";
  slice.entry = entry;
  slice.first_query = {0};
  problem.batch = 1;
  problem.seq_len_q = {whole.len_q(entry)};
  problem.seq_len_kv = {whole.len_kv(entry)};
  problem.shared_prefix = 0;
  problem.packed_padding = 0;
  if (whole.len_q(entry) == 0 || whole.len_kv(entry) == 0) return nullptr;
  return finish(whole, std::move(slice), std::move(problem));
}

ScorePatternPtr sliced_scores(const Problem& whole,
                              std::shared_ptr<const Slice> slice,
                              ScorePatternPtr scores) {
  return std::make_shared<SlicedScores>(whole, std::move(slice),
                                        std::move(scores));
}

ValuePatternPtr sliced_values(const Problem& whole,
                              std::shared_ptr<const Slice> slice,
                              ValuePatternPtr values) {
  return std::make_shared<SlicedValues>(whole, std::move(slice),
                                        std::move(values));
}

}  // namespace attnguard
