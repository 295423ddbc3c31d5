#include "guard/problem/random_problem.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "guard/base/rng.h"
#include "guard/problem/mask/mask_table.h"

namespace attnguard {
namespace {

constexpr std::array<std::int64_t, 15> kRandomLengths = {
    0, 1, 2, 3, 7, 16, 31, 32, 33, 63, 64, 65, 100, 129, 150};
constexpr std::array<std::int64_t, 8> kHeadDims = {1, 3, 8, 16, 17, 24, 64, 80};
constexpr std::array<Layout, 3> kLayouts = {Layout::kBhsd, Layout::kBshd,
                                            Layout::kSbhd};

// Masks with lists are often invalid as drawn; after so many attempts the
// problem gets the mask "full".
constexpr int kMostAttempts = 100;
constexpr std::int64_t kLongestList = 4;

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : seed_(seed) {}

  std::int64_t below(std::int64_t bound) {
    return uniform_below(derive_seed(seed_, ++draws_), bound);
  }
  bool one_in(std::int64_t n) { return below(n) == 0; }

  template <typename Range>
  auto pick(const Range& from) {
    return from[static_cast<std::size_t>(
        below(static_cast<std::int64_t>(std::size(from))))];
  }

 private:
  std::uint64_t seed_;
  std::uint64_t draws_ = 0;
};

// A value of the parameter: its lowest, a small one, or one around a part of
// the sequence.
std::int64_t random_value(const MaskParameter& parameter, std::int64_t length,
                          Draw& draw) {
  switch (draw.below(4)) {
    case 0:
      return parameter.lowest + draw.below(2);
    case 1:
      return parameter.lowest + draw.below(9);
    case 2:
      return std::max(parameter.lowest, length / 3 + draw.below(3));
    default:
      return std::max(parameter.lowest, draw.below(length + 2));
  }
}

// Lists of one kind are equally long, as begin and length of spans must be.
std::string random_term(const MaskKind& kind, const Problem& problem,
                        Draw& draw) {
  const std::int64_t shortest =
      *std::min_element(problem.seq_len_kv.begin(), problem.seq_len_kv.end());
  const std::int64_t items =
      draw.one_in(3) ? problem.batch : 1 + draw.below(kLongestList);
  std::string text(kind.name);
  for (const MaskParameter& parameter : kind.parameters) {
    text += &parameter == kind.parameters.data() ? "(" : ",";
    text += std::string(parameter.name) + "=";
    const std::int64_t count = parameter.list ? items : 1;
    // The elements of a list share the sequence.
    const std::int64_t room = shortest / count;
    for (std::int64_t n = 0; n < count; ++n)
      text += (n == 0 ? "" : ":") +
              std::to_string(random_value(parameter, room, draw));
  }
  return text + (kind.parameters.empty() ? "" : ")");
}

// Draws until the mask fits the problem. A kind that needs a rare combination
// is drawn again rather than given up, so that every kind occurs.
Mask random_mask(const Problem& problem, Draw& draw) {
  const MaskKind& kind = *draw.pick(all_mask_kinds());
  const bool two_terms = draw.one_in(3);
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    std::string text = random_term(kind, problem, draw);
    if (two_terms && attempt < kMostAttempts / 2)
      text += "+" + random_term(*draw.pick(all_mask_kinds()), problem, draw);
    const Result<Mask> mask = Mask::parse(text);
    if (mask.ok() && mask.value().validate(problem).ok()) return mask.value();
  }
  return {};
}

// Gaps between rows and heads, and between channels in one case of two.
Shape4 padded_strides(const Problem& problem, TensorRole role, Draw& draw) {
  const Shape4 shape = problem.shape(role);
  const std::int64_t step = 1 + draw.below(2);
  const std::int64_t row = shape[3] * step + 5;
  const std::int64_t head = row * std::max<std::int64_t>(shape[2], 1) + 3;
  return {head * shape[1] + 1, head, row, step};
}

Dtype random_dtype(Draw& draw) { return draw.pick(all_dtypes()).dtype; }

// One of these for each group of fields; a new field has its own.
void draw_heads(Problem& problem, Draw& draw) {
  problem.batch = 1 + draw.below(3);
  problem.num_kv_heads = 1 + draw.below(3);
  problem.num_heads = problem.num_kv_heads * (1 + draw.below(3));
  problem.head_dim_qk = draw.pick(kHeadDims);
  problem.head_dim_v = draw.pick(kHeadDims);
}

void draw_lengths(Problem& problem, Draw& draw) {
  const std::int64_t entries = draw.one_in(2) ? problem.batch : 1;
  problem.seq_len_q.clear();
  problem.seq_len_kv.clear();
  for (std::int64_t b = 0; b < entries; ++b) {
    problem.seq_len_q.push_back(draw.pick(kRandomLengths));
    problem.seq_len_kv.push_back(draw.pick(kRandomLengths));
  }
  // Self-attention and decode, which two random lengths hardly ever are.
  switch (draw.below(4)) {
    case 0:
      problem.seq_len_q = problem.seq_len_kv;
      break;
    case 1:
      problem.seq_len_q = {1};
      break;
    default:
      break;
  }
}

void draw_numbers(Problem& problem, Draw& draw) {
  problem.dtype = random_dtype(draw);
  if (draw.one_in(3)) problem.out_dtype = random_dtype(draw);
  if (draw.one_in(3)) problem.softmax_scale = 0.3;
}

void draw_modifiers(Problem& problem, Draw& draw) {
  // Under a cap few value channels, or ALiBi, leave nothing to tell keys apart
  // by: such problems are inconclusive, and say nothing of correct engines.
  if (draw.one_in(4) && problem.head_dim_v >= 17)
    problem.softcap = draw.one_in(2) ? 2.0 : 30.0;
  else if (draw.one_in(4))
    problem.alibi_max_bias = 8;
  if (draw.one_in(4)) {
    const std::int64_t count = draw.one_in(2) ? problem.num_heads : 1;
    for (std::int64_t n = 0; n < count; ++n)
      problem.sinks.push_back(static_cast<double>(draw.below(9)) / 2 - 2);
  }
  problem.empty_row =
      draw.pick(std::array{EmptyRow::kZero, EmptyRow::kZero, EmptyRow::kNan,
                           EmptyRow::kMean, EmptyRow::kAny});
  if (draw.one_in(4))
    problem.mask_form = draw.pick(std::array{
        MaskForm::kBoolean, MaskForm::kInverted, MaskForm::kAdditive});
}

// Packed and paged tensors; a wrong combination is drawn anew.
void draw_placement(Problem& problem, Draw& draw) {
  problem.value_in_key =
      problem.head_dim_v + 8 <= problem.head_dim_qk && draw.one_in(3);
  problem.packed = draw.one_in(4);
  if (problem.packed && draw.one_in(2))
    problem.packed_padding = 1 + draw.below(9);
  if (draw.one_in(3)) {
    problem.block_size =
        draw.pick(std::array<std::int64_t, 6>{1, 2, 16, 32, 64, 256});
    if (problem.layout == Layout::kSbhd) problem.layout = Layout::kBshd;
    const std::int64_t shortest =
        *std::min_element(problem.seq_len_kv.begin(), problem.seq_len_kv.end());
    if (draw.one_in(2))
      problem.shared_prefix =
          shortest / 2 / problem.block_size * problem.block_size;
  }
}

void draw_strides(Problem& problem, Draw& draw) {
  const auto padded = [&](TensorRole role, std::optional<Shape4>& strides) {
    if (draw.one_in(4)) strides = padded_strides(problem, role, draw);
  };
  if (problem.packed) return;
  padded(TensorRole::kQuery, problem.query_strides);
  padded(TensorRole::kOutput, problem.output_strides);
  if (problem.block_size > 0) return;
  padded(TensorRole::kKey, problem.key_strides);
  if (!problem.value_in_key) padded(TensorRole::kValue, problem.value_strides);
}

}  // namespace

Problem random_problem(std::uint64_t seed, Variety variety) {
  // What a later field makes invalid is drawn anew as a whole.
  for (std::uint64_t attempt = 0;; ++attempt) {
    Draw draw(derive_seed(seed, attempt));
    Problem problem;
    draw_heads(problem, draw);
    draw_lengths(problem, draw);
    draw_numbers(problem, draw);
    problem.mask = random_mask(problem, draw);
    problem.layout = draw.pick(kLayouts);
    if (variety == Variety::kAll) {
      draw_modifiers(problem, draw);
      draw_placement(problem, draw);
    }
    draw_strides(problem, draw);
    if (problem.validate().ok()) return problem;
  }
}

}  // namespace attnguard
