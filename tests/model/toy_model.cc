#include "tests/model/toy_model.h"

#include <array>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <vector>

#include "guard/base/rng.h"

namespace attnguard {
namespace {

constexpr std::size_t kWidth = 16, kContext = 256;
constexpr std::int64_t kSequences = 3;

using Vector = std::array<float, kWidth>;

float weight(std::uint64_t matrix, std::uint64_t row, std::uint64_t column) {
  const std::uint64_t at = derive_seed(derive_seed(17, matrix), row);
  return static_cast<float>(0.5 * near_normal(derive_seed(at, column)));
}

Vector embedding(std::uint64_t table, std::uint64_t index) {
  Vector out;
  for (std::size_t c = 0; c < kWidth; ++c) out[c] = weight(table, index, c);
  return out;
}

// Matrices are drawn once: 0 query, 1 key, 2 value, 3 output.
Vector project(std::size_t matrix, const Vector& in) {
  using Matrix = std::array<Vector, kWidth>;
  static const std::array<Matrix, 4> matrices = [] {
    std::array<Matrix, 4> made;
    for (std::size_t m = 0; m < made.size(); ++m)
      for (std::size_t r = 0; r < kWidth; ++r)
        made[m][r] = embedding(10 + m, r);
    return made;
  }();
  Vector out{};
  for (std::size_t r = 0; r < kWidth; ++r)
    for (std::size_t c = 0; c < kWidth; ++c)
      out[r] += matrices[matrix][r][c] * in[c];
  return out;
}

float dot(const Vector& a, const Vector& b) {
  float sum = 0;
  for (std::size_t c = 0; c < kWidth; ++c) sum += a[c] * b[c];
  return sum;
}

struct Slots {
  std::vector<Vector> keys = std::vector<Vector>(kContext + 1);
  std::vector<Vector> values = std::vector<Vector>(kContext + 1);
  std::size_t length = 0;  // Slots behind it keep what they held.
};

struct Toy {
  ToyFault fault;
  std::array<Slots, kSequences> cache;
  std::uint64_t calls = 0;

  bool is(ToyFault other) const { return fault == other; }
  void decode(const ModelStep& step);
  void attend(const ModelStep& step, const std::vector<Vector>& inputs,
              std::vector<Vector>& hidden);
  bool sees(std::size_t query, std::size_t key, const ModelStep& step,
            std::size_t end) const;
  void write(const ModelStep& step, const std::vector<Vector>& hidden);
};

bool Toy::sees(std::size_t query, std::size_t key, const ModelStep& step,
               std::size_t end) const {
  if (is(ToyFault::kIgnoresContext)) return key == query;
  if (is(ToyFault::kSeesNextToken) && key == query + 1 && key < end)
    return true;
  if (is(ToyFault::kReadsPastItsLength) && key == end) return true;
  if (is(ToyFault::kDropsCacheToken) && step.position > 0 &&
      key + 1 == static_cast<std::size_t>(step.position))
    return false;
  return key <= query;
}

void Toy::attend(const ModelStep& step, const std::vector<Vector>& inputs,
                 std::vector<Vector>& hidden) {
  const Slots& own = cache[static_cast<std::size_t>(step.sequence)];
  const Slots& other =
      cache[static_cast<std::size_t>((step.sequence + 1) % kSequences)];
  const auto begin = static_cast<std::size_t>(step.position);
  const std::size_t rows = inputs.size(), end = own.length;
  std::vector<std::vector<float>> weights(rows,
                                          std::vector<float>(end + 2, 0.0f));
  for (std::size_t i = 0; i < rows; ++i) {
    const Vector query = project(0, inputs[i]);
    for (std::size_t j = 0; j <= end; ++j)
      if (sees(begin + i, j, step, end))
        weights[i][j] = std::exp(0.25f * dot(query, own.keys[j]));
    if (is(ToyFault::kSeesOtherSequence) && other.length > 0)
      weights[i][end + 1] = std::exp(0.25f * dot(query, other.keys[0]));
  }
  for (std::size_t i = 0; i < rows; ++i) {
    float row_sum = 0;
    for (const float w : weights[i]) row_sum += w;
    Vector mixed{};
    for (std::size_t j = 0; j <= end + 1; ++j) {
      if (weights[i][j] == 0) continue;
      float sum = row_sum;
      if (is(ToyFault::kSoftmaxOverQueries)) {
        sum = 0;
        for (std::size_t r = 0; r < rows; ++r) sum += weights[r][j];
      }
      const Vector& value = j <= end ? own.values[j] : other.values[0];
      for (std::size_t c = 0; c < kWidth; ++c)
        mixed[c] += weights[i][j] / sum * value[c];
    }
    const Vector out = project(3, mixed);
    for (std::size_t c = 0; c < kWidth; ++c)
      hidden[i][c] = std::tanh(inputs[i][c] + 2 * out[c]);
  }
}

void Toy::write(const ModelStep& step, const std::vector<Vector>& hidden) {
  for (std::size_t i = 0; i < hidden.size(); ++i)
    for (std::size_t v = 0; v < kToyVocab; ++v) {
      static const std::vector<Vector> head = [] {
        std::vector<Vector> made;
        for (std::size_t r = 0; r < kToyVocab; ++r)
          made.push_back(embedding(20, r));
        return made;
      }();
      float logit = dot(head[v], hidden[i]);
      if (is(ToyFault::kConstant)) logit = 1;
      if (is(ToyFault::kCountsTheStep) && v == 0)
        logit += 0.05f * static_cast<float>(hidden.size());
      if (is(ToyFault::kRandom))
        logit += static_cast<float>(
            1e-3 * near_normal(derive_seed(calls, i * kToyVocab + v)));
      if (is(ToyFault::kNanBehindTheTenth) &&
          step.position + static_cast<std::int64_t>(i) >= 10)
        logit = NAN;
      if (is(ToyFault::kCopiesNextToken) && i + 1 < hidden.size() &&
          static_cast<std::size_t>(step.tokens[i + 1]) == v)
        logit += 8;
      if (is(ToyFault::kSkipsALogit) && i == 3 && v == 5) continue;
      step.logits[i * kToyVocab + v] = logit;
    }
}

void Toy::decode(const ModelStep& step) {
  ++calls;
  Slots& own = cache[static_cast<std::size_t>(step.sequence)];
  std::vector<Vector> inputs, hidden(step.tokens.size());
  for (std::size_t i = 0; i < step.tokens.size(); ++i) {
    const std::size_t position = static_cast<std::size_t>(step.position) + i;
    Vector input = embedding(1, static_cast<std::uint64_t>(step.tokens[i]));
    const Vector place =
        embedding(2, is(ToyFault::kPositionsStartOver) ? i : position);
    for (std::size_t c = 0; c < kWidth; ++c) input[c] += place[c];
    inputs.push_back(input);
    own.keys[position] = project(1, input);
    own.values[position] = project(2, input);
    own.length = position + 1;
  }
  attend(step, inputs, hidden);
  write(step, hidden);
}

}  // namespace

Model toy_model(ToyFault fault) {
  auto toy = std::make_shared<Toy>();
  toy->fault = fault;
  Model model{.name = "toy", .description = "a transformer of one layer"};
  model.vocab_size = kToyVocab;
  model.context_length = kContext;
  model.max_sequences = kSequences;
  model.clear = [toy](std::int64_t sequence) {
    toy->cache[static_cast<std::size_t>(sequence)].length = 0;
    return ok_status();
  };
  model.decode = [toy](std::span<const ModelStep> steps) {
    if (toy->is(ToyFault::kThrowsInSecondBatch) && steps.size() > 1)
      throw std::runtime_error("no batches today");
    for (const ModelStep& step : steps) toy->decode(step);
    if (toy->is(ToyFault::kMixesBatch))
      for (std::size_t s = 0; s < steps.size(); ++s)
        for (std::size_t v = 0; v < steps[s].logits.size(); ++v)
          steps[s].logits[v] +=
              0.05f * steps[(s + 1) % steps.size()].logits[v % kToyVocab] *
              static_cast<float>(steps.size() > 1);
    return ok_status();
  };
  return model;
}

}  // namespace attnguard
