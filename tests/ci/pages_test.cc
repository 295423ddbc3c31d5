// The manual page and the completions hold every command and option, and
// their readers take them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ci/cli.h"
#include "ci/command_table.h"
#include "guard/base/text.h"
#include "tests/support/required_engine.h"

namespace attnguard {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::string output(std::vector<const char*> words) {
  words.insert(words.begin(), "attnguard");
  std::ostringstream out, err;
  EXPECT_EQ(run_command(static_cast<int>(words.size()), words.data(), out, err),
            kExitPass)
      << err.str();
  return out.str();
}

// What a shell says, both outputs together.
std::string said(const std::string& script) {
  const std::string command = "bash -c " + shell_quote(script) + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  char buffer[4096];
  for (std::size_t n; (n = fread(buffer, 1, sizeof(buffer), pipe)) > 0;)
    text.append(buffer, n);
  pclose(pipe);
  return text;
}

class Page {
 public:
  explicit Page(const std::string& text)
      : path_(testing::TempDir() + "attnguard-page") {
    std::ofstream(path_) << text;
  }
  ~Page() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(ManPage, HoldsEveryCommandAndOption) {
  std::string page = output({"man"});
  std::erase(page, '\\');
  for (const CommandInfo* command : all_commands()) {
    EXPECT_THAT(page, HasSubstr(std::string(".SS attnguard ") + command->path));
    for (const OptionSpec& option : command->options)
      EXPECT_THAT(page, HasSubstr(std::string(".BR ") + option.name));
  }
}

TEST(ManPage, GroffHasNothingToSay) {
  if (said("command -v groff").empty()) {
    if (engine_is_required("groff")) FAIL() << "groff is not installed";
    GTEST_SKIP() << "skipped: groff not found";
  }
  const Page page(output({"man"}));
  EXPECT_THAT(said("groff -man -ww -Tutf8 -z " + page.path()), IsEmpty());
  EXPECT_THAT(said("groff -man -Tascii -P-cbou " + page.path()),
              HasSubstr("attnguard merge"));
}

TEST(Completions, EveryShellHasEveryOption) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = output({"completions", shell});
    for (const CommandInfo* command : all_commands())
      for (const OptionSpec& option : command->options)
        EXPECT_THAT(script, HasSubstr(std::string_view(option.name).substr(2)))
            << shell;
  }
}

TEST(Completions, BashOffersWhatFits) {
  const Page page(output({"completions", "bash"}));
  const auto offered = [&](const std::string& words) {
    const std::string count =
        "COMP_WORDS=(" + words + "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); ";
    return said("source " + page.path() + "; " + count +
                "_attnguard; echo \"${COMPREPLY[@]}\"");
  };
  EXPECT_EQ(offered("attnguard ch"), "check\n");
  EXPECT_EQ(offered("attnguard policy li"), "lint\n");
  EXPECT_EQ(offered("attnguard check --shar"), "--shard\n");
  EXPECT_EQ(offered("attnguard check --check row"), "row-sum\n");
  EXPECT_EQ(offered("attnguard check --coverage s"), "sampled\n");
  EXPECT_EQ(offered("attnguard check --jobs a"), "auto\n");
  EXPECT_EQ(offered("attnguard policy print --pol"), "--policy\n");
  EXPECT_EQ(offered("attnguard lint /etc/hostn"), "/etc/hostname\n");
}

TEST(Completions, OtherShellsTakeTheirs) {
  for (const char* shell : {"zsh", "fish"}) {
    if (said(std::string("command -v ") + shell).empty()) continue;
    const Page page(output({"completions", shell}));
    EXPECT_THAT(said(std::string(shell) + " -n " + page.path()), IsEmpty());
  }
}

TEST(Completions, UnknownShellsAreAnError) {
  const char* words[] = {"attnguard", "completions", "zhs"};
  std::ostringstream out, err;
  EXPECT_EQ(run_command(3, words, out, err), kExitUsage);
  EXPECT_THAT(err.str(), HasSubstr("did you mean 'zsh'"));
}

}  // namespace
}  // namespace attnguard
