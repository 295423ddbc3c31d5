// Logits of consecutive tokens of one sequence, and how far two rows differ.
#ifndef ATTNGUARD_GUARD_MODEL_LOGITS_H_
#define ATTNGUARD_GUARD_MODEL_LOGITS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace attnguard {

// values is [rows, vocab_size].
struct Logits {
  std::int32_t vocab_size = 0;
  std::vector<float> values;

  std::int64_t rows() const {
    return static_cast<std::int64_t>(values.size()) / vocab_size;
  }
  std::span<const float> row(std::int64_t i) const {
    return std::span(values).subspan(
        static_cast<std::size_t>(i) * static_cast<std::size_t>(vocab_size),
        static_cast<std::size_t>(vocab_size));
  }
};

struct RowDifference {
  bool same_bits = true;
  double largest = 0;       // |a - b|; infinite where one of them is NaN.
  std::int64_t entry = -1;  // The vocabulary entry that it is at.
  double scale = 0;         // Largest |a| or |b| that is finite.
};

RowDifference compare_rows(std::span<const float> a, std::span<const float> b);

// -log softmax(row)[token], in nats.
double negative_log_likelihood(std::span<const float> row, std::int32_t token);

// Three significant digits, for messages.
std::string short_number(double value);

}  // namespace attnguard

#endif  // ATTNGUARD_GUARD_MODEL_LOGITS_H_
