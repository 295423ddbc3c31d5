#include <cstdint>
#include <cstdio>

#include "adapters/plain/plain.h"
#include "guard/pipeline.h"
#include "guard/report/report.h"

// Yours: arrays without gaps, axes [batch, head, position, channel].
void my_attention(const float* query, const float* key, const float* value,
                  float* output, std::int64_t batch, std::int64_t num_heads,
                  std::int64_t num_kv_heads, std::int64_t seq_len_q,
                  std::int64_t seq_len_kv, std::int64_t head_dim_qk,
                  std::int64_t head_dim_v, float softmax_scale);

int main() {
  attnguard::PlainOptions options;
  options.masks = {"causal_bottom_right"};  // The masks that it implements.
  options.grouped_heads = true;  // It takes num_kv_heads < num_heads.
  const attnguard::Engine engine =
      attnguard::plain_fp32_engine("my_attention", options, my_attention);
  const attnguard::RunResult result =
      attnguard::verify(engine, attnguard::default_policy());
  const attnguard::ReportFormat* text = attnguard::find_report_format("text");
  std::fputs(text->render({&result, 1}, {}).c_str(), stdout);
  return attnguard::exit_code(result.verdict);
}
