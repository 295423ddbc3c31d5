// The attnguard command in this process: its exit code, and what it printed.
#ifndef ATTNGUARD_TESTS_CI_RUN_WORDS_H_
#define ATTNGUARD_TESTS_CI_RUN_WORDS_H_

#include <sstream>
#include <string>
#include <vector>

#include "ci/cli.h"

namespace attnguard {

// A problem that takes next to no time.
inline constexpr const char* kTinyProblem =
    "num_heads=2 num_kv_heads=1 seq_len=5 head_dim=16 mask=causal_top_left";

struct Outcome {
  int code = -1;
  std::string out, err;
};

// Runs the words that stand behind the program's name on a command line.
inline Outcome run_words(const std::vector<std::string>& words,
                         const Surroundings& surroundings = {},
                         const char* program = "attnguard") {
  std::vector<const char*> argv = {program};
  for (const std::string& word : words) argv.push_back(word.c_str());
  std::ostringstream out, err;
  Outcome outcome;
  outcome.code = run_command(static_cast<int>(argv.size()), argv.data(), out,
                             err, surroundings);
  outcome.out = out.str();
  outcome.err = err.str();
  return outcome;
}

}  // namespace attnguard

#endif  // ATTNGUARD_TESTS_CI_RUN_WORDS_H_
