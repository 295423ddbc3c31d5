// Names and messages that hold anything, in every field and every format: the
// report stays well-formed, and nothing in it is markup or a command that was
// not ours.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <pugixml.hpp>

#include "guard/report/report.h"
#include "tests/report/sample_results.h"
#include "tests/support/text_file.h"

namespace attnguard {
namespace {

struct Nasty {
  const char* name;
  std::string text;
};

const std::vector<Nasty>& nasty_texts() {
  static const std::vector<Nasty> all = {
      {"markup",
       "</title></style></svg><script>alert(1)</script><img src=x "
       "onerror=alert(2)>"},
      {"quotes", "a\" onload=\"x' style='y` \\"},
      {"cdata", "]]> <![CDATA[ --> <!-- ?> <?php"},
      {"entities", "&amp;&#60;&lt;script&gt;&bogus;"},
      {"controls", std::string("a\0b\x01\x1b[31m\x07\x7f\b\f\v\xc2\x9b", 15)},
      {"lines", "a\r\n::error file=x::planted\n##[error]planted\r::warning::b"},
      {"percents", "%0A%0D%25 %s%n%x {0} {} ${{ secrets }}"},
      {"broken_utf8",
       "\xff\xfe\xc3\x28 \xed\xa0\x80 \xf5\x80\x80\x80 \xe2\x82"},
      {"directions",
       "\xe2\x80\xae"
       "gpj.exe\xe2\x80\xac \xef\xbb\xbf\xe2\x80\x8b"},
      {"markdown", "```\n# x\n| a | b |\n|---|---|\n[y](http://z) **b** <b>"},
      {"separators", "a,b:c;d=e|f\tg\\h/../i//j"},
      {"long", std::string(20000, 'x')},
      {"empty", ""},
  };
  return all;
}

RunResult run_named(const std::string& nasty) {
  RunResult run = sample::failing_run();
  run.engine = run.policy = run.note = nasty;
  for (ProblemResult& each : run.problems) {
    each.problem_line = each.note = each.replay = nasty;
    each.smallest_failing = each.location.file = nasty;
    if (each.map) each.map->problem = nasty;
    if (each.map) each.map->cells.push_back(nasty.substr(0, 40));
    if (each.diagnosis) {
      each.diagnosis->probe_needed = nasty;
      for (Explanation& one : each.diagnosis->explanations) {
        one.summary = one.id = one.cls = one.told_apart = nasty;
        one.reports = {nasty};
      }
    }
    for (CheckResult& checked : each.checks) {
      checked.check += nasty;
      checked.note = checked.coverage = nasty;
      for (Finding& found : checked.findings)
        found.message = found.probe = found.tensor = nasty;
    }
  }
  return run;
}

void expect_json(const std::string& text) {
  EXPECT_TRUE(nlohmann::json::accept(text));
}

void expect_xml(const std::string& text) {
  pugi::xml_document document;
  const auto parsed = document.load_string(text.c_str(), pugi::parse_full);
  EXPECT_TRUE(parsed) << parsed.description() << " at " << parsed.offset << ": "
                      << text.substr(static_cast<std::size_t>(parsed.offset),
                                     200);
}

// Only the elements that the report itself writes, and no scripts: neither as
// elements nor as attributes.
void expect_html(const std::string& text) {
  expect_xml(text);
  pugi::xml_document document;
  document.load_string(text.c_str(), pugi::parse_full);
  EXPECT_FALSE(document.select_node("//script | //img | //iframe | //b"));
  EXPECT_FALSE(document.select_node("//@*[starts-with(name(), 'on')]"));
  EXPECT_FALSE(document.select_node("//@src"));
  for (const pugi::xpath_node& link : document.select_nodes("//@href"))
    EXPECT_EQ(link.attribute().value()[0], '#') << link.attribute().value();
}

// Every line is a command of ours or a line of the log that begins with our
// name, so that none can be a planted command.
void expect_github(const std::string& text) {
  int commands = 0;
  for (const std::string& line : lines_of(text)) {
    const bool command = line.starts_with("::error ") ||
                         line.starts_with("::warning ") ||
                         line.starts_with("::notice ");
    EXPECT_TRUE(command || line.starts_with("attnguard: ")) << line;
    commands += command ? 1 : 0;
  }
  EXPECT_LE(commands, 11);
  EXPECT_EQ(text.find('\r'), std::string::npos);
}

// Outside of code no `<` and no link; every code block is closed.
void expect_markdown(const std::string& text) {
  std::string fence;
  for (const std::string& line : lines_of(text)) {
    const std::size_t ticks =
        std::min(line.find_first_not_of('`'), line.size());
    if (fence.empty() && ticks >= 3) {
      fence = line.substr(0, ticks);
    } else if (!fence.empty() && ticks >= fence.size() &&
               ticks == line.size()) {
      fence.clear();
    } else if (fence.empty() && line.find('`') == std::string::npos) {
      EXPECT_EQ(line.find('<'), std::string::npos) << line;
      EXPECT_EQ(line.find("]("), std::string::npos) << line;
    }
  }
  EXPECT_TRUE(fence.empty()) << "a code block is open at the end";
}

struct Rule {
  std::string_view format;
  void (*expect)(const std::string& text);
};

void expect_nothing_more(const std::string&) {}

// A format that is not here fails the test below.
constexpr Rule kRules[] = {
    {"text", expect_nothing_more}, {"json", expect_json},
    {"junit", expect_xml},         {"sarif", expect_json},
    {"github", expect_github},     {"markdown", expect_markdown},
    {"html", expect_html},
};

// No control character but the line break and what XML keeps, and valid UTF-8.
void expect_printable(const std::string& text, bool json) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool control =
        (byte < 0x20 && byte != '\n' && byte != '\t' && byte != '\r') ||
        (byte == 0x7f && !json);  // JSON's strings may hold it.
    ASSERT_FALSE(control) << "byte " << int{byte} << " at " << i;
  }
  const nlohmann::json as_value = text;
  EXPECT_NO_THROW((void)as_value.dump()) << "not UTF-8";
}

class HostileReport : public testing::TestWithParam<std::string_view> {};

TEST_P(HostileReport, StaysWellFormedWhateverTheNamesHold) {
  const auto* rule = std::ranges::find(kRules, GetParam(), &Rule::format);
  ASSERT_NE(rule, std::end(kRules)) << "say what a good report of it is";
  for (const Nasty& nasty : nasty_texts()) {
    SCOPED_TRACE(nasty.name);
    const RunResult run = run_named(nasty.text);
    ReportOptions options{.version = nasty.text, .command_line = nasty.text};
    options.timestamp = options.hostname = nasty.text;
    const std::string text =
        find_report_format(GetParam())->render({&run, 1}, options);
    if (GetParam() != "junit")
      expect_printable(text, rule->expect == expect_json);
    rule->expect(text);
  }
}

// The positive control: what is expected of a format can fail.
TEST(HostileReport, IsNoticedWhenItIsNotEscaped) {
  EXPECT_NONFATAL_FAILURE(expect_xml("<a>\"<</a>"), "");
  EXPECT_NONFATAL_FAILURE(expect_html("<html><b/></html>"), "");
  EXPECT_NONFATAL_FAILURE(expect_html("<html onload='x'/>"), "");
  EXPECT_NONFATAL_FAILURE(expect_json("{"), "");
  EXPECT_NONFATAL_FAILURE(expect_github("a\n"), "");
  EXPECT_NONFATAL_FAILURE(expect_markdown("a <b>"), "");
  EXPECT_NONFATAL_FAILURE(expect_markdown("```text\na\n"), "");
}

// A name must be told as it is, not only safely.
TEST(HostileReport, KeepsTheTextOfANameInHtml) {
  const RunResult run = run_named("a<b>&\"c'");
  const std::string text = find_report_format("html")->render({&run, 1}, {});
  pugi::xml_document document;
  ASSERT_TRUE(document.load_string(text.c_str(), pugi::parse_full));
  const std::string heading = document.select_node("//h2").node().child_value();
  EXPECT_EQ(heading, "a<b>&\"c' ");
}

INSTANTIATE_TEST_SUITE_P(
    EveryFormat, HostileReport, testing::ValuesIn(report_format_names()),
    [](const testing::TestParamInfo<std::string_view>& tested) {
      return std::string(tested.param);
    });

}  // namespace
}  // namespace attnguard
