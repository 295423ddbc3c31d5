#include <cstdint>
#include <cstdio>
#include <span>

#include "guard/model/verify_model.h"
#include "guard/report/model_report.h"

// Yours: logits is [tokens.size(), 32], one row for each token.
void my_model(std::span<const std::int32_t> tokens, std::span<float> logits);

int main() {
  const attnguard::Model model = attnguard::model_from_callback(
      "my_model", /*vocab_size=*/32,
      [](std::span<const std::int32_t> tokens, std::span<float> logits) {
        my_model(tokens, logits);
        return attnguard::ok_status();
      });
  const attnguard::ModelResult result = attnguard::verify_model(model);
  std::fputs(attnguard::model_text_report(result, {}).c_str(), stdout);
  return attnguard::exit_code(result.verdict);
}
