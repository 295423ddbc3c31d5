#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <pugixml.hpp>
#include <set>

#include "guard/report/report.h"
#include "tests/report/sample_results.h"
#include "tests/support/xml_schema.h"

namespace attnguard {
namespace {

std::string junit_text(const std::vector<RunResult>& results) {
  return find_report_format("junit")->render(results, {});
}

int count_cases(pugi::xml_node suite, const char* child) {
  int count = 0;
  for (pugi::xml_node one : suite.children("testcase"))
    count += child == nullptr || one.child(child) ? 1 : 0;
  return count;
}

// The attributes of every suite must be the counts of its elements, and the
// root's their sums.
void expect_consistent(pugi::xml_node root) {
  int tests = 0, failures = 0, errors = 0;
  for (pugi::xml_node suite : root.children("testsuite")) {
    EXPECT_EQ(suite.attribute("tests").as_int(), count_cases(suite, nullptr));
    EXPECT_EQ(suite.attribute("failures").as_int(),
              count_cases(suite, "failure"));
    EXPECT_EQ(suite.attribute("errors").as_int(), count_cases(suite, "error"));
    EXPECT_EQ(suite.attribute("skipped").as_int(),
              count_cases(suite, "skipped"));
    double seconds = 0;
    for (pugi::xml_node one : suite.children("testcase"))
      seconds += one.attribute("time").as_double();
    EXPECT_NEAR(suite.attribute("time").as_double(), seconds, 6e-4);
    tests += suite.attribute("tests").as_int();
    failures += suite.attribute("failures").as_int();
    errors += suite.attribute("errors").as_int();
  }
  EXPECT_EQ(root.attribute("tests").as_int(), tests);
  EXPECT_EQ(root.attribute("failures").as_int(), failures);
  EXPECT_EQ(root.attribute("errors").as_int(), errors);
}

TEST(JunitReport, CountsWhatItHolds) {
  pugi::xml_document document;
  const std::string text =
      junit_text({sample::passing_run(), sample::failing_run()});
  ASSERT_TRUE(document.load_string(text.c_str()));
  const pugi::xml_node root = document.child("testsuites");
  expect_consistent(root);
  const pugi::xml_node suite = root.last_child();
  EXPECT_EQ(suite.attribute("failures").as_int(), 4);
  EXPECT_EQ(suite.attribute("errors").as_int(), 2);
  EXPECT_EQ(suite.attribute("skipped").as_int(), 3);
  EXPECT_NEAR(suite.attribute("time").as_double(), 7 * 0.004, 1e-6);
  const pugi::xml_node first = root.first_child();
  EXPECT_EQ(
      first.attribute("failures").as_int() + first.attribute("errors").as_int(),
      0);
}

TEST(JunitReport, MarksInconclusiveAsAnErrorOfItsOwnType) {
  pugi::xml_document document;
  const std::string text = junit_text({sample::failing_run()});
  ASSERT_TRUE(document.load_string(text.c_str()));
  EXPECT_TRUE(document.select_node("//error[@type='inconclusive']"));
  EXPECT_TRUE(document.select_node("//error[@type='engine_error']"));
  EXPECT_TRUE(document.select_node(
      "//testcase[starts-with(@name,'repeatable')]/system-out"));
  EXPECT_FALSE(document.select_node(
      "//testcase[starts-with(@name,'repeatable')]/failure"));
}

TEST(JunitReport, IsRedWhenNothingWasChecked) {
  pugi::xml_document document;
  RunResult refused = sample::failing_run();
  refused.verdict = Verdict::kInconclusive;
  refused.problems = {refused.problems[5]};
  const std::string text = junit_text({sample::empty_run(), refused});
  ASSERT_TRUE(document.load_string(text.c_str()));
  const pugi::xml_node root = document.child("testsuites");
  expect_consistent(root);
  for (pugi::xml_node suite : root.children("testsuite"))
    EXPECT_EQ(suite.attribute("errors").as_int(), 1);
}

// What all editions of Jenkins' schema have in common, as far as it bears on
// what is written here: which attributes and children an element may have, and
// which it must. For machines without the schema itself.
struct Element {
  std::string_view name;
  std::set<std::string> required, optional, children;
};

const std::vector<Element>& elements() {
  static const std::vector<Element> all = {
      {"testsuites",
       {},
       {"name", "time", "tests", "failures", "errors"},
       {"testsuite"}},
      {"testsuite",
       {"name", "tests", "failures", "errors"},
       {"time", "skipped", "timestamp", "hostname", "id", "package", "group",
        "file", "log", "url"},
       {"testsuite", "properties", "testcase", "system-out", "system-err"}},
      {"properties", {}, {}, {"property"}},
      {"property", {"name", "value"}, {}, {}},
      {"testcase",
       {"name"},
       {"time", "classname", "group"},
       {"skipped", "error", "failure", "system-out", "system-err"}},
      {"failure", {}, {"type", "message"}, {}},
      {"error", {}, {"type", "message"}, {}},
      {"skipped", {}, {}, {}},
      {"system-out", {}, {}, {}},
  };
  return all;
}

void expect_in_schema(pugi::xml_node node) {
  const auto known = std::ranges::find(
      elements(), std::string_view(node.name()), &Element::name);
  ASSERT_NE(known, elements().end()) << node.name();
  std::set<std::string> given;
  for (pugi::xml_attribute attribute : node.attributes()) {
    given.insert(attribute.name());
    EXPECT_TRUE(known->required.contains(attribute.name()) ||
                known->optional.contains(attribute.name()))
        << node.name() << " " << attribute.name();
  }
  for (const std::string& name : known->required)
    EXPECT_TRUE(given.contains(name)) << node.name() << " lacks " << name;
  for (pugi::xml_node child : node.children()) {
    if (child.type() != pugi::node_element) continue;
    EXPECT_TRUE(known->children.contains(child.name()))
        << child.name() << " in " << node.name();
    expect_in_schema(child);
  }
}

TEST(JunitReport, HasTheElementsAndAttributesOfTheCommonSchema) {
  const ReportOptions options{.version = "1.2.3",
                              .timestamp = "2026-01-31T12:00:00",
                              .hostname = "build-7"};
  for (const RunResult& run : {sample::passing_run(), sample::failing_run(),
                               sample::empty_run(), sample::hostile_run()}) {
    pugi::xml_document document;
    const std::string text =
        find_report_format("junit")->render({&run, 1}, options);
    ASSERT_TRUE(document.load_string(text.c_str()));
    const pugi::xml_node root = document.child("testsuites");
    ASSERT_TRUE(root);
    expect_in_schema(root);
    const pugi::xml_node suite = root.first_child();
    EXPECT_STREQ(suite.attribute("timestamp").value(), "2026-01-31T12:00:00");
    EXPECT_STREQ(suite.attribute("hostname").value(), "build-7");
    for (pugi::xml_node node : {root, suite})
      EXPECT_THAT(node.attribute("time").value(),
                  testing::MatchesRegex("[0-9]+\\.[0-9]{3}"));
  }
}

TEST(JunitReport, IsValidByJenkinsSchema) {
  const std::string schema = schema_path("jenkins-junit.xsd");
  ATTNGUARD_NEED_XML_SCHEMA(schema);
  for (const std::vector<RunResult>& results :
       std::vector<std::vector<RunResult>>{
           {},
           {sample::passing_run(), sample::failing_run(), sample::empty_run()},
           {sample::hostile_run()}})
    EXPECT_EQ(xml_schema_errors(schema, junit_text(results)), "");
  // The positive control: a document that is not valid is not.
  EXPECT_NE(xml_schema_errors(schema, "<testsuites><testsuite/></testsuites>"),
            "");
}

TEST(JunitReport, LeavesOutWhatXmlForbids) {
  pugi::xml_document document;
  const std::string text = junit_text({sample::hostile_run()});
  ASSERT_TRUE(document.load_string(text.c_str()));
  expect_consistent(document.child("testsuites"));
  for (const char* forbidden : {"\x1b", "\x01", "\xff", "\xef\xbf\xbf",
                                "\xed\xa0\x80", "&#1;", "&#x1;", "&#27;"})
    EXPECT_EQ(text.find(forbidden), std::string::npos) << forbidden;
  const std::string engine =
      document.child("testsuites").first_child().attribute("name").value();
  EXPECT_NE(engine.find("a\"b'c<d>&e]]>[31m"), std::string::npos);
  EXPECT_NE(engine.find("\xc3\xa9"), std::string::npos);
}

}  // namespace
}  // namespace attnguard
