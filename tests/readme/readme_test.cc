// README.md keeps its word: its code compiles and runs, its policy parses, and
// what it shows as output is what the command prints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "adapters/llama_cpp/ggml.h"
#if ATTNGUARD_WITH_ONNXRUNTIME
#include "adapters/onnxruntime/onnxruntime.h"
#endif
#include "adapters/plain/builtin.h"
#include "guard/base/text.h"
#include "guard/check/check.h"
#include "guard/defect/defect.h"
#include "guard/pipeline.h"
#include "guard/policy/policy_yaml.h"
#include "guard/report/report.h"
#include "tests/support/program.h"
#include "tests/support/required_engine.h"
#include "tests/support/text_file.h"

namespace attnguard {
// In place of the built-in policy, whose long problems take seconds.
const Policy& short_policy();
}  // namespace attnguard

// The two programs of the README, as they stand there.
#include "tests/readme/engine_example.cc"
#define main plain_example
#define default_policy short_policy
#include "tests/readme/plain_example.cc"
#undef default_policy
#undef main

namespace {

std::int64_t extra_keys = 0;  // Visible to each row of the kernels below
                              // beyond those that should be.

}  // namespace

void my_head(const void* query, long q_stride, const void* key, long k_stride,
             const void* value, long v_stride, void* output, long out_stride,
             long seq_len_q, long seq_len_kv, long head_dim_qk, long head_dim_v,
             double softmax_scale) {
  const auto* q = static_cast<const float*>(query);
  const auto* k = static_cast<const float*>(key);
  const auto* v = static_cast<const float*>(value);
  auto* out = static_cast<float*>(output);
  for (std::int64_t i = 0; i < seq_len_q; ++i) {
    const std::int64_t end =
        std::min(seq_len_kv, i + seq_len_kv - seq_len_q + 1 + extra_keys);
    std::vector<double> weights, sums(static_cast<std::size_t>(head_dim_v));
    double top = -INFINITY;
    for (std::int64_t j = 0; j < end; ++j) {
      double score = 0;
      for (std::int64_t c = 0; c < head_dim_qk; ++c)
        score += softmax_scale * q[i * q_stride + c] * k[j * k_stride + c];
      weights.push_back(score);
      top = std::max(top, score);
    }
    double total = 0;
    for (std::int64_t j = 0; j < end; ++j) {
      const double weight =
          std::exp(weights[static_cast<std::size_t>(j)] - top);
      total += weight;
      for (std::int64_t c = 0; c < head_dim_v; ++c)
        sums[static_cast<std::size_t>(c)] += weight * v[j * v_stride + c];
    }
    for (std::int64_t c = 0; c < head_dim_v; ++c)
      out[i * out_stride + c] = static_cast<float>(
          total > 0 ? sums[static_cast<std::size_t>(c)] / total : 0);
  }
}

void my_attention(const float* query, const float* key, const float* value,
                  float* output, std::int64_t batch, std::int64_t num_heads,
                  std::int64_t num_kv_heads, std::int64_t seq_len_q,
                  std::int64_t seq_len_kv, std::int64_t head_dim_qk,
                  std::int64_t, float softmax_scale) {
  const std::int64_t d = head_dim_qk, size_kv = seq_len_kv * d;
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t h = 0; h < num_heads; ++h) {
      const std::int64_t at_q = (b * num_heads + h) * seq_len_q * d;
      const std::int64_t g = h * num_kv_heads / num_heads;
      const std::int64_t at_kv = (b * num_kv_heads + g) * size_kv;
      my_head(query + at_q, d, key + at_kv, d, value + at_kv, d, output + at_q,
              d, seq_len_q, seq_len_kv, d, d,
              static_cast<double>(softmax_scale));
    }
}

namespace attnguard {

const Policy& short_policy() {
  static const Policy policy =
      *parse_policy(
           "version: 1\n"
           "problems:\n"
           "  - {batch: 2, num_heads: 4, num_kv_heads: 2, seq_len_q: [1, 9],\n"
           "     seq_len_kv: [33], head_dim: 32, mask: causal_bottom_right}\n"
           "  - {batch: 2, seq_len_q: 4, seq_len_kv: [[9, 5]], head_dim: 32,\n"
           "     dtype: [fp32, fp16], mask: causal_bottom_right, layout: "
           "bshd}\n",
           "short", check_ids())
           .policy;
  return policy;
}

namespace {

using ::testing::HasSubstr;

// What stands between ```LANGUAGE and ``` in the README.
std::vector<std::string> blocks_of(const std::string& language) {
  std::vector<std::string> blocks;
  bool inside = false, wanted = false;
  for (const std::string& line :
       lines_of(read_file(ATTNGUARD_TEST_DATA "/../README.md"))) {
    if (line.starts_with("```")) {
      inside = !inside;
      wanted = inside && line == "```" + language;
      if (wanted) blocks.emplace_back();
    } else if (wanted) {
      blocks.back() += line + "\n";
    }
  }
  EXPECT_FALSE(blocks.empty()) << "the README has no block of " << language;
  return blocks;
}

TEST(Readme, ShowsTheProgramsThatAreCompiledHere) {
  const std::vector<std::string> compiled = {
      read_file(ATTNGUARD_TEST_DATA "/readme/plain_example.cc"),
      read_file(ATTNGUARD_TEST_DATA "/readme/engine_example.cc")};
  EXPECT_EQ(blocks_of("cpp"), compiled);
  for (const std::string& program : compiled)
    EXPECT_LT(std::ranges::count(program, '\n'), 30);
}

class ReadmePrograms : public testing::Test {
 protected:
  void TearDown() override { extra_keys = 0; }
};

TEST_F(ReadmePrograms, PassOneOnACorrectKernelOnRawArrays) {
  testing::internal::CaptureStdout();
  const int code = plain_example();
  const std::string report = testing::internal::GetCapturedStdout();
  EXPECT_EQ(code, 0) << report;
  EXPECT_THAT(report, HasSubstr("engine   my_attention\n"));
}

TEST_F(ReadmePrograms, CatchALeakOnRawArrays) {
  extra_keys = 1;
  testing::internal::CaptureStdout();
  EXPECT_EQ(plain_example(), 1);
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              HasSubstr("sees key 25, which is not allowed"));
}

TEST_F(ReadmePrograms, PassACorrectCallbackAndCatchALeakingOne) {
  const RunResult right = verify(my_engine(), short_policy());
  EXPECT_EQ(right.verdict, Verdict::kPass);
  // All but the fp16 one are run.
  EXPECT_EQ(std::ranges::count(right.problems, Verdict::kPass,
                               &ProblemResult::verdict),
            3);
  extra_keys = 1;
  EXPECT_EQ(verify(my_engine(), short_policy()).verdict, Verdict::kViolation);
}

TEST(Readme, ShowsAPolicyThatParses) {
  for (const std::string& text : blocks_of("yaml")) {
    const PolicyParse parse = parse_policy(text, "attention.yaml", check_ids());
    EXPECT_TRUE(parse.policy) << format_diagnostics(parse.diagnostics);
  }
}

// Words of a shell's command line; single quotes and `\` before a line's end.
std::vector<std::string> words_of(const std::string& command) {
  std::vector<std::string> words(1);
  bool quoted = false;
  for (char c : command) {
    if (c == '\'')
      quoted = !quoted;
    else if (quoted || (c != ' ' && c != '\n' && c != '\\'))
      words.back() += c;
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

// A command of the README and what it says the command prints.
struct Session {
  std::string command;
  std::vector<std::string> shown;
};

std::vector<Session> sessions_of(std::string_view command) {
  std::vector<Session> sessions;
  for (const std::string& block : blocks_of("console")) {
    Session session;
    bool in_command = true;
    for (const std::string& line : lines_of(block)) {
      if (in_command)
        session.command += line + "\n";
      else
        session.shown.push_back(line);
      in_command = in_command && line.ends_with('\\');
    }
    if (session.command.starts_with("$ " + std::string(command)))
      sessions.push_back(session);
  }
  return sessions;
}

// Empty when the lines are those shown. In the README a line "..." stands for
// any number of lines, and "..." at the end of a line for the rest of it.
std::string first_difference(const std::vector<std::string>& shown,
                             const std::vector<std::string>& printed) {
  std::size_t at = 0;
  bool skip = false;
  for (const std::string& line : shown) {
    if (trim(line) == "...") {
      skip = true;
      continue;
    }
    const auto matches = [&line](const std::string& real) {
      return line.ends_with("...")
                 ? real.starts_with(line.substr(0, line.size() - 3))
                 : real == line;
    };
    while (skip && at < printed.size() && !matches(printed[at])) ++at;
    if (at == printed.size() || !matches(printed[at])) return line;
    ++at;
    skip = false;
  }
  return skip || at == printed.size() ? "" : "nothing after the last line";
}

TEST(Readme, ShowsTheRealErrorsOfAPolicy) {
  // The README's policy with the two mistakes that the README names.
  std::string text = blocks_of("yaml").front();
  for (const auto& [right, wrong] : {std::pair{"repeatable: w", "repeatble: w"},
                                     {"fp16: 2.0e-3", "fp16: -1"}})
    text.replace(text.find(right), std::string_view(right).size(), wrong);
  const std::string printed = format_diagnostics(
      parse_policy(text, "attention.yaml", check_ids()).diagnostics);
  const std::vector<Session> sessions = sessions_of("attnguard policy lint");
  ASSERT_EQ(sessions.size(), 1u);
  EXPECT_EQ(first_difference(sessions[0].shown, lines_of(printed)), "")
      << printed;
}

TEST(Readme, ShowsTheRealDifferenceOfPolicies) {
  const PolicyParse parsed =
      parse_policy(blocks_of("yaml").front(), "attention.yaml", check_ids());
  ASSERT_TRUE(parsed.policy);
  const std::string printed =
      diff_policies(default_policy(), *parsed.policy, check_ids());
  const std::vector<Session> sessions = sessions_of("attnguard policy diff");
  ASSERT_EQ(sessions.size(), 1u);
  EXPECT_EQ(first_difference(sessions[0].shown, lines_of(printed)), "")
      << printed;
}

// Runs "attnguard check ..." and returns the report.
std::vector<std::string> check_output(const Engine& engine,
                                      const std::vector<std::string>& words) {
  // As the command: the built-in policy, with other problems.
  Policy policy = default_policy();
  policy.problems.clear();
  RunOptions options;
  for (std::size_t i = 3; i + 1 < words.size(); i += 2) {
    if (words[i] == "--problem") {
      const Result<Problem> problem = Problem::parse(words[i + 1]);
      EXPECT_TRUE(problem.ok()) << problem.status().message();
      if (problem.ok()) policy.problems.push_back({problem.value(), {}});
    } else if (words[i] != "--engine") {
      ADD_FAILURE() << "teach this test the option " << words[i];
    }
  }
  const RunResult run = verify(engine, policy, options);
  return lines_of(find_report_format("text")->render({&run, 1}, {}));
}

// Checks all sessions with the adapter's engines; the number there were.
int expect_real_output(const Adapter& adapter) {
  int checked = 0;
  for (const Session& session : sessions_of("attnguard check")) {
    const std::vector<std::string> words = words_of(session.command);
    std::string adapter_name;
    const auto option = std::ranges::find(words, "--engine");
    if (option == words.end() || option + 1 == words.end()) {
      ADD_FAILURE() << "no engine: " << session.command;
      continue;
    }
    const Result<EngineSpec> spec =
        parse_engine_spec(*(option + 1), adapter_name);
    if (adapter_name != adapter.name) continue;
    if (std::ranges::find(words, "--problem") == words.end()) {
      // The whole built-in policy takes too long for a test.
      const std::string all = std::to_string(default_policy().problems.size());
      EXPECT_EQ(session.shown.back(),
                "pass  " + all + " problems: " + all + " passed; ...");
      continue;
    }
    ++checked;
    const Result<Engine> engine = adapter.open(spec.value());
    if (!engine.ok()) {
      ADD_FAILURE() << engine.status().message();
      continue;
    }
    const std::vector<std::string> printed =
        check_output(engine.value(), words);
    EXPECT_EQ(first_difference(session.shown, printed), "")
        << "is not what this prints:\n"
        << session.command << testing::PrintToString(printed);
  }
  return checked;
}

TEST(Readme, ShowsRealOutputOfBuiltInEngines) {
  EXPECT_GE(expect_real_output(kBuiltinAdapter), 2);
}

TEST(Readme, ShowsRealOutputOfGgml) {
  const Result<Engine> engine = kGgmlAdapter.open({"ggml:flash", "flash", {}});
  ATTNGUARD_SKIP_WITHOUT("ggml", engine);
  EXPECT_GE(expect_real_output(kGgmlAdapter), 1);
}

#if ATTNGUARD_WITH_ONNXRUNTIME
TEST(Readme, ShowsRealOutputOfOnnxRuntime) {
  const Result<Engine> engine = kOnnxRuntimeAdapter.open(
      {"onnxruntime:attention", "attention", {{"version", "1.26.0"}}});
  ATTNGUARD_SKIP_WITHOUT("onnxruntime", engine);
  EXPECT_EQ(expect_real_output(kOnnxRuntimeAdapter), 3);
}
#endif

// The run itself is a test of the command; here its counts.
TEST(Readme, CountsTheDefectsOfTheSelftest) {
  const std::vector<Session> sessions = sessions_of("attnguard selftest");
  ASSERT_EQ(sessions.size(), 1u);
  const auto legal = std::ranges::count_if(
      all_defects(), [](const Defect* defect) { return defect->legal(); });
  const std::string defects = std::to_string(std::ssize(all_defects()) - legal);
  EXPECT_THAT(sessions[0].shown,
              testing::Contains(testing::StartsWith(
                  defects + " defects: " + defects + " (100.0 %) detected")));
  EXPECT_THAT(sessions[0].shown,
              testing::Contains(testing::StartsWith(std::to_string(legal) +
                                                    " legal variants: ")));
}

#ifdef ATTNGUARD_COMMAND
TEST(Readme, ShowsTheRealInfluenceMap) {
  const std::vector<Session> sessions = sessions_of("attnguard map");
  ASSERT_EQ(sessions.size(), 1u);
  std::string line = sessions[0].command;
  line.replace(0, std::string_view("$ attnguard").size(), ATTNGUARD_COMMAND);
  const ProgramOutcome outcome = run_program(line);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(first_difference(sessions[0].shown, lines_of(outcome.output)), "")
      << outcome.output;
}

// A line without what another compiler's rounding may change: numbers, the
// probe in brackets, and how columns are padded.
std::string without_numbers(const std::string& line) {
  static const std::regex number("[0-9]+(\\.[0-9]+)?(e[-+]?[0-9]+)?");
  static const std::regex probe("\\([a-z0-9-]+\\)"), spaces(" +");
  std::string text = std::regex_replace(line, probe, "(probe)");
  text = std::regex_replace(text, number, "#");
  return std::regex_replace(text, spaces, " ");
}

std::vector<std::string> without_numbers(std::vector<std::string> lines) {
  for (std::string& line : lines) line = without_numbers(line);
  return lines;
}

TEST(Readme, ShowsWhatTuneMeasuresAndWrites) {
  const std::vector<Session> sessions = sessions_of("attnguard tune");
  ASSERT_EQ(sessions.size(), 1u);
  const TestFolder folder;
  std::string line = sessions[0].command;
  line.replace(0, std::string_view("$ attnguard").size(), ATTNGUARD_COMMAND);
  const ProgramOutcome outcome =
      run_program("cd " + shell_quote(folder.file("")) + "\n" + line);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(first_difference(without_numbers(sessions[0].shown),
                             without_numbers(lines_of(outcome.output))),
            "")
      << outcome.output;
  std::vector<std::vector<std::string>> shown;
  for (const std::string& block : blocks_of("yaml"))
    shown.push_back(without_numbers(lines_of(block)));
  EXPECT_THAT(shown, testing::Contains(
                         without_numbers(lines_of(folder.read("tuned.yaml")))));
}
#endif

}  // namespace
}  // namespace attnguard
