// The HTML report: its structure, and what Chromium makes of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <pugixml.hpp>
#include <set>

#include "guard/check/check.h"
#include "guard/report/influence_map_svg.h"
#include "guard/report/report.h"
#include "tests/report/sample_results.h"
#include "tests/support/chromium.h"

namespace attnguard {
namespace {

using testing::HasSubstr;

std::string html_page(const std::vector<RunResult>& results) {
  std::vector<RuleText> rules;
  for (const CheckInfo* check : all_checks())
    rules.push_back({check->id, check->summary, check->explanation});
  const ReportOptions options{.version = "1.2.3",
                              .command_line = "attnguard check",
                              .rules = rules,
                              .timestamp = "2026-01-31T12:00:00",
                              .hostname = "build-7"};
  return find_report_format("html")->render(results, options);
}

const std::string& sample_page() {
  static const std::string page = html_page(
      {sample::passing_run(), sample::failing_run(), sample::empty_run()});
  return page;
}

pugi::xml_document parsed_page(const std::string& page) {
  pugi::xml_document document;
  EXPECT_TRUE(document.load_string(page.c_str(), pugi::parse_full));
  return document;
}

TEST(HtmlReport, LoadsNothingAndRunsNothing) {
  const pugi::xml_document page = parsed_page(sample_page());
  EXPECT_FALSE(page.select_node("//script | //link | //iframe | //img"));
  EXPECT_FALSE(page.select_node("//@src"));
  EXPECT_EQ(sample_page().find("url("), std::string::npos);
  EXPECT_EQ(sample_page().find("@import"), std::string::npos);
  EXPECT_THAT(
      page.select_node("//meta[@http-equiv='Content-Security-Policy']/@content")
          .attribute()
          .value(),
      testing::StartsWith("default-src 'none'"));
}

TEST(HtmlReport, CanBeHeard) {
  const pugi::xml_document page = parsed_page(sample_page());
  EXPECT_STREQ(page.child("html").attribute("lang").value(), "en");
  EXPECT_TRUE(page.select_node("//title"));
  EXPECT_TRUE(page.select_node("//main"));
  // Each column and each row of a table has a header that says which it is.
  EXPECT_FALSE(page.select_node("//th[not(@scope)]"));
  EXPECT_FALSE(page.select_node("//table[not(caption)]"));
  EXPECT_FALSE(page.select_node("//tbody/tr[not(th)]"));
  // Each picture has a name, or is hidden beside words that say the same.
  EXPECT_FALSE(page.select_node(
      "//svg[not(@aria-labelledby) and not(@aria-hidden='true')]"));
  EXPECT_FALSE(page.select_node("//a[not(text()) and not(@aria-label)]"));
}

TEST(HtmlReport, HasEveryIdOnceAndEveryLinkATarget) {
  const pugi::xml_document page = parsed_page(sample_page());
  std::set<std::string> ids;
  for (const pugi::xpath_node& id : page.select_nodes("//@id"))
    EXPECT_TRUE(ids.insert(id.attribute().value()).second)
        << id.attribute().value();
  int links = 0;
  for (const pugi::xpath_node& link : page.select_nodes(
           "//@href | //@aria-labelledby | //@aria-describedby")) {
    std::string to = link.attribute().value();
    if (to.starts_with('#')) to.erase(0, 1);
    EXPECT_TRUE(ids.contains(to)) << to;
    ++links;
  }
  EXPECT_GT(links, 20);
}

TEST(HtmlReport, SaysWhatTheRunSays) {
  const pugi::xml_document page = parsed_page(sample_page());
  const auto text = [&](const char* path) {
    std::string all;
    for (const pugi::xpath_node& node :
         page.select_nodes((std::string(path) + "//text()").c_str()))
      all += node.node().value();
    return all;
  };
  EXPECT_THAT(text("//header"), HasSubstr("violation"));
  EXPECT_THAT(text("//header"), HasSubstr("8 problems: 2 violated"));
  EXPECT_EQ(page.select_nodes("//section[starts-with(@id,'run-')]").size(), 3u);
  const std::string group = text("//article[@id='run-2-g1']");
  for (const char* words :
       {"softmax over the query axis", "row-sum, future-influence, repeatable",
        "reproduces all 18 probe calls", "row 0 is moved by keys 1-4",
        "Sum of the weights of each row", "row-sum: the first 7 of 20 findings",
        "Replay it with", "attnguard check --engine 'builtin:wrong_axis'"})
    EXPECT_THAT(group, HasSubstr(words));
  EXPECT_THAT(text("//article"), HasSubstr("the engine threw: out of range"));
  EXPECT_THAT(text("//article"), HasSubstr("one key only"));
  EXPECT_THAT(text("//section"), HasSubstr("must be a multiple of 16"));
  // Check by verdict: row-sum of the failing run.
  EXPECT_TRUE(
      page.select_node("//section[@id='run-2']//tr[starts-with(th,'row-sum')]"
                       "/td[span[contains(@class,'violation')]='1']"));
}

TEST(HtmlReport, ShowsEveryCellOfTheMap) {
  const pugi::xml_document page = parsed_page(sample_page());
  const InfluenceMap map = *sample::wrong_axis().map;
  for (std::size_t r = 0; r < map.cells.size(); ++r)
    for (std::size_t c = 0; c < map.cells[r].size(); ++c) {
      const auto row = std::to_string(r), column = std::to_string(c);
      const std::string path = "//*[@id='run-2-g1-map-cells']/rect[@y=" + row +
                               " and @x<=" + column + " and @x+@width>" +
                               column + "]/@class";
      EXPECT_EQ(page.select_node(path.c_str()).attribute().value(),
                cell_look(map.cells[r][c]).css)
          << path;
    }
  EXPECT_EQ(page.select_nodes("//div[@class='zoom']").size(), 8u);
}

// The last row's sum lies above what is expected, below it, and so does that
// of the only row there is.
TEST(HtmlReport, WritesExpectedBesideTheStemsOfThePlot) {
  for (int rows : {1, 2, 40})
    for (double last : {3.0, 0.25}) {
      RunResult run = sample::failing_run();
      CheckResult& sums = run.problems[1].checks[1];
      sums.findings.clear();
      for (int row = 0; row < rows; ++row)
        sums.findings.push_back(sample::finding(FindingKind::kMass, row, -1,
                                                row + 1 < rows ? 0.5 : last, 1,
                                                "wrong sum"));
      sums.num_findings = rows;
      const pugi::xml_document page = parsed_page(html_page({run}));
      const pugi::xml_node plot =
          page.select_node("//svg[@class='plot']").node();
      const pugi::xml_node label =
          plot.find_child([](const pugi::xml_node& node) {
            return std::string_view(node.child_value()) == "expected";
          });
      ASSERT_TRUE(label);
      EXPECT_STREQ(label.attribute("text-anchor").value(), "");  // at its start
      const double begins = label.attribute("x").as_double();
      EXPECT_LT(begins, plot.attribute("width").as_double() - 45);
      int dots = 0;
      for (const pugi::xml_node dot : plot.children("circle")) {
        ++dots;  // Of the dot's stem x is the same.
        EXPECT_LT(
            dot.attribute("cx").as_double() + dot.attribute("r").as_double(),
            begins)
            << rows;
      }
      EXPECT_EQ(dots, rows);
    }
}

TEST(HtmlReport, GroupsWhatFailsAlikeAndCountsTheRest) {
  RunResult run = sample::failing_run();
  run.problems.clear();
  for (int i = 0; i < 20; ++i) {
    run.problems.push_back(sample::wrong_axis());
    if (i >= 4) run.problems.back().checks[1].check += std::to_string(i);
  }
  const pugi::xml_document page = parsed_page(html_page({run}));
  EXPECT_EQ(page.select_nodes("//article").size(), 12u);
  EXPECT_THAT(page.select_node("//article[1]/p[1]").node().child_value(),
              testing::StartsWith("4 problems: "));
  EXPECT_TRUE(page.select_node("//summary[.='5 smaller groups']"));
}

TEST(HtmlReport, OfAPassHasNoFailures) {
  const std::string text = html_page({sample::passing_run()});
  EXPECT_THAT(text, HasSubstr("<header class=\"pass\">"));
  EXPECT_FALSE(parsed_page(text).select_node("//article"));
}

TEST(HtmlReport, TellsWhatIsSuppressedAndWhy) {
  RunResult run = sample::failing_run();
  CheckResult& sums = run.problems[1].checks[1];
  sums.num_suppressed = sums.num_findings;
  run.suppressions = {{.check = "row-sum",
                       .engine = "*",
                       .problem = "*seq_len_q=5*",
                       .reason = "known, <see> #12",
                       .expires = "2030-01-01",
                       .num_findings = 20}};
  const pugi::xml_document page = parsed_page(html_page({run}));
  EXPECT_TRUE(page.select_node(
      "//details[summary='1 suppression']//tr[th='row-sum']"
      "[td='20 findings'][td='known, <see> #12'][td='2030-01-01']"));
  EXPECT_TRUE(page.select_node("//table//th[.='suppressed']"));
  EXPECT_FALSE(
      page.select_node("//article//summary[.='row-sum: 20 findings']"));
  // Without any there is neither the column nor the list.
  const pugi::xml_document without =
      parsed_page(html_page({sample::failing_run()}));
  EXPECT_FALSE(without.select_node("//th[.='suppressed']"));
}

// --- In Chromium ---

TEST(HtmlReportInChromium, OpensWithoutComplaints) {
  ATTNGUARD_NEED_CHROMIUM();
  Chromium chromium;
  EXPECT_EQ(chromium.console(sample_page()), "");
  EXPECT_EQ(chromium.console(html_page({sample::hostile_run()})), "");
  // The positive controls: complaints are seen, and the page lets no script
  // run.
  EXPECT_THAT(chromium.console("<script>console.error('planted')</script>"),
              HasSubstr("planted"));
  std::string planted = sample_page();
  planted.insert(planted.rfind("</body>"), "<script>var x = 1</script>");
  EXPECT_THAT(chromium.console(planted), HasSubstr("Content Security Policy"));
}

struct Color {
  char sign;
  std::array<int, 3> light, dark;
};

constexpr Color kColors[] = {
    {'#', {0x48, 0x78, 0xb0}, {0x4f, 0x86, 0xc6}},
    {'.', {0xe6, 0xea, 0xef}, {0x26, 0x2e, 0x37}},
    {'X', {0xd3, 0x33, 0x1e}, {0xff, 0x5a, 0x43}},
    {'o', {0xed, 0xa1, 0x00}, {0xff, 0xc0, 0x3a}},
};

// Whether each cell of the screenshot has the colour of its sign. The page is
// asked where the first cell is and how large.
void expect_cells(Chromium& chromium, const std::string& page,
                  const PageView& view) {
  const std::string answer = chromium.ask(
      page,
      "const b=doc.querySelector('#run-1-g1-map-cells rect')"
      ".getBoundingClientRect();answer=JSON.stringify([b.x,b.y,b.height])",
      view);
  const auto box = nlohmann::json::parse(answer, nullptr, false);
  ASSERT_TRUE(box.is_array()) << answer;
  const double left = box[0], top = box[1], cell = box[2];
  ASSERT_GT(cell, 10);
  const Picture picture = chromium.screenshot(page, view);
  ASSERT_GT(picture.width, 0) << "no screenshot";
  const InfluenceMap map = *sample::wrong_axis().map;
  for (std::size_t r = 0; r < map.cells.size(); ++r)
    for (std::size_t c = 0; c < map.cells[r].size(); ++c) {
      // Left of the cross or ring in the cell's middle.
      const auto seen =
          picture.at(left + (static_cast<double>(c) + 0.16) * cell,
                     top + (static_cast<double>(r) + 0.5) * cell);
      const Color& color =
          *std::ranges::find(kColors, map.cells[r][c], &Color::sign);
      const auto& expected = view.dark ? color.dark : color.light;
      for (std::size_t i = 0; i < 3; ++i)
        EXPECT_NEAR(seen[i], expected[i], 3)
            << "row " << r << ", key " << c << ", " << map.cells[r][c];
    }
}

TEST(HtmlReportInChromium, ShowsTheWrongCellsWhereTheyAre) {
  ATTNGUARD_NEED_CHROMIUM();
  Chromium chromium;
  const std::string page = html_page({sample::failing_run()});
  for (const PageView& view :
       {PageView{}, PageView{.dark = true}, PageView{.width = 390}}) {
    SCOPED_TRACE(testing::Message()
                 << view.width << (view.dark ? ", dark" : ""));
    expect_cells(chromium, page, view);
  }
}

TEST(HtmlReportInChromium, FitsAPhone) {
  ATTNGUARD_NEED_CHROMIUM();
  Chromium chromium;
  const std::string measure =
      "doc.querySelectorAll('details').forEach(d=>d.open=true);"
      "answer=win.innerWidth+' '+doc.documentElement.scrollWidth";
  for (const std::string& page :
       {sample_page(), html_page({sample::hostile_run()})}) {
    const PageView phone{.width = 390, .height = 844};
    EXPECT_EQ(chromium.ask(page, measure, phone), "390 390");
  }
  // The positive control: a page that is too wide.
  EXPECT_EQ(chromium
                .ask("<!DOCTYPE html><html><body><p style='width:800px;"
                     "margin:0'>a</p></body></html>",
                     measure, {.width = 390, .height = 844})
                .substr(0, 3),
            "390");
}

TEST(HtmlReportInChromium, ZoomsIntoACellWithoutAScript) {
  ATTNGUARD_NEED_CHROMIUM();
  Chromium chromium;
  const std::string page = html_page({sample::failing_run()});
  const std::string script =
      "answer=[...doc.querySelectorAll('.zoom')].filter("
      "z=>win.getComputedStyle(z).display!='none').map(z=>z.id).join()";
  EXPECT_EQ(chromium.ask(page, script), "");
  EXPECT_EQ(chromium.ask(page, script, {.fragment = "#run-1-g1-map-q2-k2"}),
            "run-1-g1-map-q2-k2");
}

TEST(HtmlReportInChromium, ShowsTheCellThatIsZoomedInto) {
  ATTNGUARD_NEED_CHROMIUM();
  Chromium chromium;
  // Opened as a fragment would: a screenshot does not scroll.
  std::string page = html_page({sample::failing_run()});
  const std::string start = "<div class=\"zoom\" id=\"run-1-g1-map-q2-k2\"";
  ASSERT_NE(page.find(start), page.npos);
  page.replace(page.find(start), 4, "<div style=\"display:flex\"");
  const auto box = nlohmann::json::parse(
      chromium.ask(page,
                   "const b=doc.querySelector('#run-1-g1-map-q2-k2 svg')"
                   ".getBoundingClientRect();"
                   "answer=JSON.stringify([b.x,b.y,b.height])"),
      nullptr, false);
  ASSERT_TRUE(box.is_array());
  const double left = box[0], top = box[1], cell = box[2].get<double>() / 5;
  const Picture picture = chromium.screenshot(page);
  // Five cells each way: row 2, key 2 is missed in the middle; above it is a
  // leak, and left of it what is right.
  const auto at = [&](double row, double key) {
    return picture.at(left + (key + 0.2) * cell, top + (row + 0.5) * cell);
  };
  EXPECT_EQ(at(2, 2), kColors[3].light);
  EXPECT_EQ(at(1, 2), kColors[2].light);
  EXPECT_EQ(at(2, 1), kColors[0].light);
  EXPECT_EQ(at(2, 3), kColors[1].light);
}

}  // namespace
}  // namespace attnguard
