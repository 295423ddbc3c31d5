// The templates for CI hosts, as far as they go without their hosts: they are
// YAML, and their shell steps do what they say with the command that was built.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <yaml-cpp/yaml.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "guard/base/text.h"

namespace attnguard {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::string kRoot = ATTNGUARD_TEST_DATA "/..";

using Variables = std::map<std::string, std::string>;

class TemplatesTest : public testing::Test {
 protected:
  TemplatesTest() {
    std::string name = testing::TempDir() + "attnguard-templates-XXXXXX";
    folder_ = ::mkdtemp(name.data());
    fs::create_directory(folder_ + "/bin");
    fs::create_symlink(ATTNGUARD_COMMAND, folder_ + "/bin/attnguard");
  }
  ~TemplatesTest() override { fs::remove_all(folder_); }

  std::string read(const std::string& name) const {
    std::ifstream stream(folder_ + "/" + name);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  // The exit code of the script, with its output in "log".
  int run(const std::string& shell, const std::string& script,
          const Variables& variables) const {
    std::ofstream(folder_ + "/script") << script;
    std::string command = "cd " + shell_quote(folder_) + " && env PATH=\"" +
                          folder_ + "/bin:$PATH\"";
    for (const auto& [name, value] : variables)
      command += " " + name + "=" + shell_quote(value);
    command += " " + shell + " script >log 2>&1";
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::string folder_;
};

// The action's step "check", with inputs in place of their defaults.
class Action {
 public:
  Action()
      : action_(YAML::LoadFile(kRoot + "/ci/templates/github/action.yml")) {}

  std::string script() const { return step()["run"].as<std::string>(); }
  Variables variables(const Variables& inputs) const {
    Variables variables;
    for (const auto& each : step()["env"]) {
      // "${{ inputs.engine }}"
      const std::string value = each.second.as<std::string>();
      const std::size_t at = value.find("inputs.") + 7;
      const std::string input = value.substr(at, value.find(' ', at) - at);
      EXPECT_TRUE(action_["inputs"][input]) << value;
      const auto given = inputs.find(input);
      variables[each.first.as<std::string>()] =
          given != inputs.end()
              ? given->second
              : action_["inputs"][input]["default"].as<std::string>("");
    }
    variables["GITHUB_OUTPUT"] = "output";
    variables["GITHUB_STEP_SUMMARY"] = "summary";
    return variables;
  }
  YAML::Node step() const {
    for (const YAML::Node& each : action_["runs"]["steps"])
      if (each["id"] && each["id"].as<std::string>() == "check") return each;
    ADD_FAILURE() << "no step 'check'";
    return {};
  }

  YAML::Node action_;
};

constexpr const char* kGithubShell = "bash --noprofile --norc -e -o pipefail";

TEST_F(TemplatesTest, GithubActionPassesAndFailsWithTheEngine) {
  const Action action;
  EXPECT_EQ(action.action_["runs"]["using"].as<std::string>(), "composite");
  std::ofstream(folder_ + "/p.yaml")
      << "version: 1\nproblems:\n  - {seq_len: 9, head_dim: 16}\n";
  const std::string args = "--no-map --check row-sum";
  EXPECT_EQ(run(kGithubShell, action.script(),
                action.variables({{"engine", "builtin:tiled"},
                                  {"args", args + " --coverage sampled"},
                                  {"policy", "p.yaml"}})),
            0)
      << read("log");
  EXPECT_THAT(read("output"), HasSubstr("exit-code=0"));
  EXPECT_THAT(read("summary"), HasSubstr("pass"));
  const Variables wrong = action.variables({{"engine", "builtin:wrong_axis"},
                                            {"policy", "p.yaml"},
                                            {"report", "out.json"},
                                            {"args", args}});
  EXPECT_EQ(run(kGithubShell, action.script(), wrong), 1) << read("log");
  EXPECT_THAT(read("summary"), HasSubstr("do not sum to 1"));
  EXPECT_THAT(read("out.json"), HasSubstr("\"violation\""));
}

TEST_F(TemplatesTest, GithubActionKeepsOnePartForTheMerge) {
  const Action action;
  std::ofstream(folder_ + "/p.yaml")
      << "version: 1\nproblems:\n  - {seq_len: [9, 17], head_dim: 16}\n";
  for (const char* part : {"1/2", "2/2"})
    EXPECT_EQ(run(kGithubShell, action.script(),
                  action.variables({{"engine", "builtin:tiled"},
                                    {"policy", "p.yaml"},
                                    {"shard", part},
                                    {"report", std::string(1, part[0])}})),
              0)
        << read("log");
  EXPECT_EQ(run("sh", "attnguard merge 1 2", {}), 0) << read("log");
  EXPECT_THAT(read("log"), HasSubstr("2 problems: 2 passed"));
}

// The script of a GitLab job.
std::string gitlab_script(const YAML::Node& job) {
  std::string script = "set -e\n";
  for (const YAML::Node& line : job["script"])
    script += line.as<std::string>() + "\n";
  return script;
}

TEST_F(TemplatesTest, GitlabJobsJoinTheirParts) {
  const YAML::Node file =
      YAML::LoadFile(kRoot + "/ci/templates/gitlab/attnguard.gitlab-ci.yml");
  std::ofstream(folder_ + "/p.yaml")
      << "version: 1\nproblems:\n  - {seq_len: [9, 17], head_dim: 16, mask: "
         "causal_top_left}\n";
  for (const auto& [engine, code] :
       {std::pair{"builtin:tiled", 0}, {"builtin:wrong_axis", 1}}) {
    Variables variables;
    for (const auto& each : file["variables"])
      variables[each.first.as<std::string>()] = each.second.as<std::string>("");
    variables["ATTNGUARD_ENGINE"] = engine;
    variables["ATTNGUARD_POLICY"] = "p.yaml";
    variables["CI_NODE_TOTAL"] =
        file["attnguard"]["parallel"].as<std::string>();
    for (const char* index : {"1", "2"}) {
      variables["CI_NODE_INDEX"] = index;
      EXPECT_EQ(run("sh", gitlab_script(file["attnguard"]), variables), 0)
          << read("log");
    }
    EXPECT_EQ(run("sh", gitlab_script(file["attnguard-report"]), variables),
              code)
        << read("log");
    EXPECT_THAT(read("attnguard.xml"), HasSubstr("<testsuite"));
  }
  // A mistake in the request has no report, and fails the job itself.
  fs::remove(folder_ + "/attnguard-1.json");
  EXPECT_EQ(run("sh", gitlab_script(file["attnguard"]),
                {{"ATTNGUARD_ENGINE", "builtin:tild"},
                 {"ATTNGUARD_POLICY", ""},
                 {"ATTNGUARD_ARGS", ""},
                 {"CI_NODE_INDEX", "1"},
                 {"CI_NODE_TOTAL", "2"}}),
            2);
}

TEST_F(TemplatesTest, PreCommitHooksRunOnFiles) {
  const YAML::Node hooks = YAML::LoadFile(kRoot + "/.pre-commit-hooks.yaml");
  ASSERT_EQ(hooks.size(), 2u);
  std::map<std::string, std::string> entries;
  for (const YAML::Node& hook : hooks) {
    for (const char* key : {"id", "name", "entry", "language", "files"})
      EXPECT_TRUE(hook[key]) << key;
    entries[hook["id"].as<std::string>()] = hook["entry"].as<std::string>();
  }
  std::ofstream(folder_ + "/good.yaml") << "version: 1\n";
  std::ofstream(folder_ + "/bad.yaml") << "version: 1\nchekcs: {}\n";
  const std::string policy = entries["attnguard-policy"];
  EXPECT_EQ(run("sh", policy + " good.yaml good.yaml", {}), 0) << read("log");
  EXPECT_NE(run("sh", policy + " good.yaml bad.yaml", {}), 0);
  EXPECT_THAT(read("log"), HasSubstr("did you mean 'checks'"));
  EXPECT_NE(run("sh", policy + " bad.yaml good.yaml", {}), 0);
  EXPECT_NE(run("sh", entries["attnguard-onnx"] + " good.yaml", {}), 0);
}

}  // namespace
}  // namespace attnguard
