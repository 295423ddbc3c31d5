// `extends`: what is merged how, and what ends in an error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "guard/pipeline.h"
#include "tests/policy/policy_testing.h"
#include "tests/support/temp_folder.h"

namespace attnguard {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PolicyExtends : public testing::Test {
 protected:
  PolicyParse load(const std::string& name) {
    return load_policy(folder_.file(name), check_ids());
  }
  Policy loaded(const std::string& name) {
    PolicyParse result = load(name);
    EXPECT_EQ(format_diagnostics(result.diagnostics), "");
    return result.policy.value_or(Policy{});
  }
  // Messages, without the folder's name.
  std::vector<std::string> messages(const std::string& name) {
    std::vector<std::string> all;
    const PolicyParse result = load(name);
    EXPECT_FALSE(result.policy);
    for (PolicyDiagnostic diagnostic : result.diagnostics) {
      diagnostic.source_line.clear();
      std::string text = format_diagnostics({&diagnostic, 1});
      for (std::size_t at; (at = text.find(folder_.path() + "/")) != text.npos;)
        text.erase(at, folder_.path().size() + 1);
      all.push_back(text.substr(0, text.find('\n')));
    }
    return all;
  }

  TempFolder folder_;
};

TEST_F(PolicyExtends, LaterWinsAndEnginesWinOverTheTopLevel) {
  folder_.write("base/org.yaml",
                "version: 1\n"
                "seed: 7\n"
                "checks: {repeatable: warning, finite: off}\n"
                "tolerances: {reference: {fp16: 0.1, bf16: 0.2}}\n"
                "problems: [{seq_len: [4, 5]}]\n"
                "engines:\n"
                "  \"a*\": {tolerances: {reference: {fp16: 0.3}}}\n"
                "suppressions: [{check: memory, reason: of the base}]\n");
  folder_.write("own.yaml",
                "version: 1\n"
                "extends: base/org.yaml\n"
                "checks: {finite: error}\n"
                "tolerances: {reference: {fp16: 0.4}}\n"
                "engines:\n"
                "  \"ab\": {tolerances: {reference: {bf16: 0.5}}}\n"
                "suppressions: [{check: lse, reason: my own}]\n");
  const Policy policy = loaded("own.yaml");
  EXPECT_EQ(policy.name, folder_.file("own.yaml"));
  EXPECT_EQ(policy.seed, 7u);
  EXPECT_EQ(policy.problems.size(), 2u);
  const auto number = [&](const char* engine, Dtype dtype) {
    return policy.resolve(engine).check("reference").tolerance(dtype).number;
  };
  EXPECT_EQ(number("other", Dtype::kFp16), 0.4);
  EXPECT_EQ(number("other", Dtype::kBf16), 0.2);
  EXPECT_EQ(number("ab", Dtype::kFp16), 0.3);
  EXPECT_EQ(number("ab", Dtype::kBf16), 0.5);
  EXPECT_EQ(policy.resolve("x").check("finite").severity, Severity::kError);
  EXPECT_EQ(policy.resolve("x").check("repeatable").severity,
            Severity::kWarning);
  ASSERT_EQ(policy.suppressions.size(), 2u);
  EXPECT_EQ(policy.suppressions[0].reason, "of the base");
  EXPECT_EQ(policy.suppressions[0].location.file,
            folder_.file("base/org.yaml"));
}

TEST_F(PolicyExtends, PathsAreRelativeToTheFileThatNamesThem) {
  folder_.write("one/a.yaml", "version: 1\nseed: 3\nextends: ../two/b.yaml\n");
  folder_.write("two/b.yaml", "version: 1\nseed: 4\nextends: c.yaml\n");
  folder_.write("two/c.yaml", "version: 1\ncoverage: full\n");
  const Policy policy = loaded("one/a.yaml");
  EXPECT_EQ(policy.seed, 3u);
  EXPECT_EQ(policy.resolve("x").coverage, Coverage::kFull);
  EXPECT_EQ(policy.problems.size(), default_policy().problems.size());
}

TEST_F(PolicyExtends, ProblemsReplaceAndExtraProblemsAdd) {
  folder_.write("base.yaml", "version: 1\nproblems: [{seq_len: 4}]\n");
  folder_.write("replace.yaml",
                "version: 1\nextends: base.yaml\nproblems: [{seq_len: 9}]\n");
  folder_.write("add.yaml",
                "version: 1\nextends: base.yaml\n"
                "extra_problems: [{seq_len: 9}]\n");
  folder_.write("add_built_in.yaml",
                "version: 1\nextra_problems: [{seq_len: 9}]\n");
  EXPECT_EQ(loaded("replace.yaml").problems.size(), 1u);
  EXPECT_EQ(loaded("add.yaml").problems.size(), 2u);
  EXPECT_EQ(loaded("add_built_in.yaml").problems.size(),
            default_policy().problems.size() + 1);
}

TEST_F(PolicyExtends, TheBuiltInPolicyCanBeNamed) {
  folder_.write("own.yaml",
                "version: 1\nextends: built-in\nengines: {mine: {}}\n");
  const Policy policy = loaded("own.yaml");
  // Named, its engines stay; left out, `engines` would replace them.
  EXPECT_EQ(policy.patches.size(), default_policy().patches.size() + 1);
}

TEST_F(PolicyExtends, ACircleIsAnErrorWithTheChain) {
  folder_.write("a.yaml", "version: 1\nextends: b.yaml\n");
  folder_.write("b.yaml", "version: 1\n\nextends: ./x/../a.yaml\n");
  EXPECT_THAT(
      messages("a.yaml"),
      ElementsAre("b.yaml:3:10: error: extends: the policies extend each "
                  "other in a circle (a.yaml -> b.yaml -> a.yaml)",
                  "a.yaml:2:10: error: extends: 'b.yaml' has errors of its own "
                  "(a.yaml -> b.yaml)"));
  folder_.write("self.yaml", "version: 1\nextends: self.yaml\n");
  EXPECT_THAT(messages("self.yaml"), ElementsAre(HasSubstr("in a circle")));
  std::filesystem::create_symlink(folder_.file("link_target.yaml"),
                                  folder_.file("link.yaml"));
  folder_.write("link_target.yaml", "version: 1\nextends: link.yaml\n");
  EXPECT_THAT(messages("link_target.yaml"),
              ElementsAre(HasSubstr("in a circle")));
}

TEST_F(PolicyExtends, AMissingFileIsAnErrorWithTheChain) {
  folder_.write("a.yaml", "version: 1\nextends: sub/b.yaml\n");
  folder_.write("sub/b.yaml", "version: 1\nextends: gone.yaml\n");
  EXPECT_THAT(
      messages("a.yaml"),
      ElementsAre("sub/b.yaml:2:10: error: extends: cannot open the policy: No "
                  "such file or directory (a.yaml -> sub/b.yaml -> "
                  "sub/gone.yaml)",
                  HasSubstr("'sub/b.yaml' has errors of its own")));
}

TEST_F(PolicyExtends, ErrorsOfTheBaseStandAtTheirPlace) {
  folder_.write("base.yaml", "version: 1\nchecks: {row-sums: off}\n");
  folder_.write("own.yaml", "version: 1\nseed: x\nextends: base.yaml\n");
  EXPECT_THAT(messages("own.yaml"),
              ElementsAre(HasSubstr("base.yaml:2:10: error: unknown check"),
                          HasSubstr("own.yaml:2:7: error: seed"),
                          HasSubstr("own.yaml:3:10: error: extends")));
}

TEST_F(PolicyExtends, HostileNamesEndInAMessage) {
  ASSERT_EQ(::mkfifo(folder_.file("pipe").c_str(), 0600), 0);
  std::filesystem::create_directory(folder_.file("folder"));
  folder_.write("large.yaml", std::string((4u << 20) + 1, ' '));
  folder_.write("binary.yaml", std::string_view("\x00\xff\x01", 3));
  for (const auto& [value, says] : {std::pair{"pipe", "no regular file"},
                                    {"/dev/zero", "no regular file"},
                                    {"folder", "directory"},
                                    {"''", "an empty text"},
                                    {"[a.yaml, b.yaml]", "got a list"},
                                    {"{a: b}", "got a map"},
                                    {"large.yaml", "larger than 4 MiB"},
                                    {"\"a\\0.yaml\"", "no zero byte"}}) {
    folder_.write("own.yaml",
                  "version: 1\nextends: " + std::string(value) + "\n");
    EXPECT_THAT(messages("own.yaml"), ElementsAre(HasSubstr(says))) << value;
  }
  folder_.write("own.yaml", "version: 1\nextends: binary.yaml\n");
  EXPECT_THAT(messages("own.yaml"),
              ElementsAre(HasSubstr("U+0000"), HasSubstr("0xff"),
                          HasSubstr("errors of its own")));
  const std::string long_name(5000, 'a');
  folder_.write("own.yaml", "version: 1\nextends: " + long_name + "\n");
  EXPECT_THAT(messages("own.yaml"), ElementsAre(HasSubstr("cannot open")));
}

TEST_F(PolicyExtends, ALongChainEnds) {
  for (int i = 0; i < 40; ++i)
    folder_.write(std::to_string(i) + ".yaml",
                  "version: 1\nextends: " + std::to_string(i + 1) + ".yaml\n");
  EXPECT_THAT(messages("0.yaml").front(),
              HasSubstr("more than 16 policies extend each other"));
}

}  // namespace
}  // namespace attnguard
