// README.md's sessions, against what the command prints.
#ifndef ATTNGUARD_TESTS_SUPPORT_README_SESSIONS_H_
#define ATTNGUARD_TESTS_SUPPORT_README_SESSIONS_H_

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <string>

namespace attnguard {

// Every session that begins with "$ attnguard " and `words`: its lines occur
// in what `run` gives for the command's words, in this order. A line that ends
// with "..." is the beginning of one. Returns how many sessions there are.
inline int expect_readme_sessions(
    const std::string& words,
    const std::function<std::string(const std::string& words)>& run) {
  std::ifstream file(ATTNGUARD_TEST_DATA "/../README.md");
  const std::string readme{std::istreambuf_iterator<char>(file), {}};
  const std::string lead = "```console\n$ attnguard ";
  int sessions = 0;
  for (std::size_t at = readme.find(lead + words); at != std::string::npos;
       at = readme.find(lead + words, at + 1)) {
    std::istringstream shown(readme.substr(
        at + lead.size(), readme.find("\n```", at + 3) - at - lead.size()));
    std::string given, line;
    std::getline(shown, given);
    const std::string printed = run(given);
    std::size_t place = 0;
    while (std::getline(shown, line)) {
      if (line == "..." || line.empty()) continue;
      if (line.ends_with("..."))
        line.resize(line.size() - 3);
      else
        line += "\n";
      const std::size_t found = printed.find("\n" + line, place);
      EXPECT_NE(found, std::string::npos) << line << "\nis not in\n" << printed;
      if (found != std::string::npos) place = found + 1;
    }
    ++sessions;
  }
  return sessions;
}

}  // namespace attnguard

#endif  // ATTNGUARD_TESTS_SUPPORT_README_SESSIONS_H_
