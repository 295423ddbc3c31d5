// `attnguard map`: text, SVG and PNG of the same map, its place, and what it
// says when there is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <pugixml.hpp>

#include "ci/cli.h"
#include "ci/map_png.h"
#include "guard/base/text.h"
#include "tests/adapters/plugin/test_plugins.h"
#include "tests/ci/run_words.h"
#include "tests/support/chromium.h"
#include "tests/support/program.h"

namespace attnguard {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

Outcome run_map(const std::vector<std::string>& more,
                const Surroundings& surroundings = {}) {
  std::vector<std::string> words = {"map"};
  words.insert(words.end(), more.begin(), more.end());
  return run_words(words, surroundings);
}

const std::vector<std::string> kWrongAxis = {
    "--engine", "builtin:wrong_axis", "--problem",
    "seq_len=5 head_dim=16 mask=causal_bottom_right"};

Outcome wrong_axis(std::vector<std::string> more) {
  more.insert(more.begin(), kWrongAxis.begin(), kWrongAxis.end());
  return run_map(more);
}

TEST(MapCommand, DrawsTextAndEndsAsAViolation) {
  const Outcome outcome = wrong_axis({});
  EXPECT_EQ(outcome.code, kExitViolation);
  EXPECT_THAT(outcome.err, IsEmpty());
  EXPECT_THAT(outcome.out, StartsWith("builtin:wrong_axis, batch 0, head 0 of "
                                      "batch=1 "));
  EXPECT_THAT(outcome.out, HasSubstr("  query 0  # X X X X\n"
                                     "        1  # # X X X\n"));
  EXPECT_THAT(outcome.out, HasSubstr("X  moves it, and must not"));
}

TEST(MapCommand, OfACorrectEnginePasses) {
  const Outcome outcome =
      run_map({"--engine", "builtin:tiled", "--problem", kWrongAxis[3]});
  EXPECT_EQ(outcome.code, kExitPass) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("  query 0  # . . . .\n"));
}

TEST(MapCommand, DrawsAnSvgOfItsOwn) {
  const Outcome outcome = wrong_axis({"--format", "svg"});
  EXPECT_EQ(outcome.code, kExitViolation);
  pugi::xml_document document;
  ASSERT_TRUE(document.load_string(outcome.out.c_str(), pugi::parse_full));
  const pugi::xml_node svg = document.child("svg");
  EXPECT_STREQ(svg.attribute("xmlns").value(), "http://www.w3.org/2000/svg");
  EXPECT_TRUE(svg.child("title") && svg.child("desc") && svg.child("style"));
  // The upper triangle without the diagonal: four runs.
  EXPECT_EQ(document.select_nodes("//g/g/rect[@class='leak']").size(), 4u);
  EXPECT_EQ(document.select_node("//g/g/rect[@class='leak'][@y='0']/@width")
                .attribute()
                .as_int(),
            4);
  EXPECT_FALSE(document.select_node("//rect[@class='miss']"));
}

TEST(MapCommand, DrawsAPngWithTheCellsInTheirPlaces) {
  const TestFolder folder;
  const std::string file = folder.file("map.png");
  const Outcome outcome = wrong_axis({"--format", "png", "--output", file});
  EXPECT_EQ(outcome.code, kExitViolation) << outcome.err;
  EXPECT_THAT(outcome.out, IsEmpty());
  const Picture picture = read_png(folder.read("map.png"));
  const int cell = png_cell_size(5);
  ASSERT_EQ(picture.width, 5 * cell + 1);
  ASSERT_EQ(picture.height, 5 * cell + 1);
  const std::array<int, 3> seen = {0x48, 0x78, 0xb0}, leak = {0xd3, 0x33, 0x1e};
  for (int row = 0; row < 5; ++row)
    for (int key = 0; key < 5; ++key)
      EXPECT_EQ(picture.at((key + 0.15) * cell, (row + 0.5) * cell),
                key <= row ? seen : leak)
          << row << " " << key;
  // The cross in the middle of a wrong cell, and none in a right one.
  const std::array<int, 3> paper = {255, 255, 255};
  EXPECT_EQ(picture.at(4.5 * cell, 0.5 * cell), paper);
  EXPECT_EQ(picture.at(0.5 * cell, 0.5 * cell), seen);
}

TEST(MapPng, HasEverySign) {
  const Result<std::string> bytes =
      map_png({.problem = "", .cells = {"#.", "Xo", "?"}});
  ASSERT_TRUE(bytes.ok());
  const Picture picture = read_png(bytes.value());
  const int cell = png_cell_size(3);
  const auto at = [&](int row, int key) {
    return picture.at((key + 0.15) * cell, (row + 0.5) * cell);
  };
  EXPECT_EQ(at(0, 1), (std::array<int, 3>{0xe6, 0xea, 0xef}));
  EXPECT_EQ(at(1, 1), (std::array<int, 3>{0xed, 0xa1, 0x00}));
  EXPECT_EQ(at(2, 0), (std::array<int, 3>{0x9a, 0xa3, 0xad}));
  EXPECT_EQ(at(2, 1), (std::array<int, 3>{255, 255, 255}));  // No cell there.
  EXPECT_EQ(map_png({}).status().code(), StatusCode::kInvalidArgument);
}

TEST(MapPng, MakesCellsOfLargeMapsSmaller) {
  EXPECT_EQ(png_cell_size(5), 24);
  EXPECT_EQ(png_cell_size(300), 4);
  EXPECT_EQ(png_cell_size(5000), 1);
  const Result<std::string> bytes =
      map_png({.problem = "", .cells = {std::string(1024, '#')}});
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(read_png(bytes.value()).width, 1025);
}

TEST(MapCommand, FindsThePlaceWhereSomethingIsWrong) {
  // Only rows from 2048 on see keys that they must not.
  const std::vector<std::string> late = {
      "--engine", "defect:late-positions-unmasked", "--problem",
      "seq_len_q=64 seq_len_kv=2080 head_dim=16 mask=causal_bottom_right"};
  const Outcome outcome = run_map(late);
  EXPECT_EQ(outcome.code, kExitViolation) << outcome.out << outcome.err;
  std::vector<std::string> start = late;
  start.insert(start.end(), {"--query", "0", "--key", "0"});
  EXPECT_EQ(run_map(start).code, kExitPass);
}

TEST(MapCommand, ShowsTheRowAndKeyAskedFor) {
  const Outcome outcome =
      run_map({"--engine", "builtin:tiled", "--problem",
               "batch=2 num_heads=4 num_kv_heads=2 seq_len=100 head_dim=16 "
               "mask=causal_bottom_right",
               "--batch", "1", "--head", "3", "--query", "99", "--key", "95",
               "--tokens", "6"});
  EXPECT_EQ(outcome.code, kExitPass) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("batch 1, head 3 of "));
  EXPECT_THAT(outcome.out, HasSubstr("94 95 96 97"));
  EXPECT_THAT(outcome.out, HasSubstr("query 94  "));
  EXPECT_THAT(outcome.out, HasSubstr("      99  "));
}

struct Mistake {
  std::vector<std::string> words;
  const char* says;
};

TEST(MapCommand, SaysWhatIsWrongWithTheRequest) {
  Surroundings terminal;
  terminal.out_is_terminal = true;
  const std::string& problem = kWrongAxis[3];
  const Mistake mistakes[] = {
      {{}, "no engine given"},
      {{"--engine", "builtin:tiled"}, "no problem given"},
      {{"--engine", "builtin:tiled", "--problem", "seq_len=x"}, "seq_len"},
      {{"--engine", "builtin:tield", "--problem", problem}, "mean 'tiled'?"},
      {{"--engine", "builtin:tiled", "--problem", problem, "--head", "1"},
       "--head"},
      {{"--engine", "builtin:tiled", "--problem", problem, "--key", "5"},
       "--key"},
      {{"--engine", "builtin:tiled", "--problem", problem, "--tokens", "0"},
       "--tokens"},
      {{"--engine", "builtin:tiled", "--problem", problem, "--format", "pgn"},
       "did you mean 'png'?"},
      {{"--engine", "builtin:tiled", "--problem", problem, "--format", "png"},
       "--output FILE.png"},
      {{"--engine", "builtin:tiled", "--problem", problem, "--output",
        "/nonexistent/x"},
       "cannot write the map to '/nonexistent/x': No such file"},
  };
  for (const Mistake& mistake : mistakes) {
    const Outcome outcome = run_map(mistake.words, terminal);
    EXPECT_EQ(outcome.code, kExitUsage) << mistake.says;
    EXPECT_THAT(outcome.err, HasSubstr(mistake.says));
    EXPECT_THAT(outcome.out, IsEmpty());
  }
}

TEST(MapCommand, SaysWhyThereIsNoMap) {
  const Outcome outcome =
      run_map({"--engine", "builtin:throws", "--problem", kWrongAxis[3]});
  EXPECT_EQ(outcome.code, kExitEngineError);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err,
              StartsWith("attnguard: error: no map: engine 'builtin:throws' "
                         "threw an exception: this engine always throws\n"));
}

// Without a cell nothing was checked, which is no pass.
TEST(MapCommand, OfAProblemWithoutRowsOrKeysIsNoPass) {
  const auto map_of = [](const std::string& lengths, const char* format) {
    return run_map({"--engine", "builtin:tiled", "--format", format,
                    "--problem", lengths + " head_dim=16 mask=full"});
  };
  for (const char* format : {"text", "svg", "png"})
    for (const char* lengths : {"seq_len=0", "seq_len_q=0 seq_len_kv=4",
                                "seq_len_q=4 seq_len_kv=0"}) {
      const Outcome outcome = map_of(lengths, format);
      EXPECT_EQ(outcome.code, kExitInconclusive) << lengths << " " << format;
      EXPECT_THAT(outcome.out, IsEmpty());
      EXPECT_THAT(outcome.err, HasSubstr("batch entry 0 has no "));
      EXPECT_THAT(outcome.err, HasSubstr("nothing was checked"));
    }
}

// The first entry is empty, and nobody asked for it.
TEST(MapCommand, IsOfAnEntryThatHasRowsAndKeys) {
  const std::vector<std::string> words = {
      "--engine", "builtin:tiled", "--problem",
      "batch=2 seq_len=0,5 head_dim=16 mask=causal_bottom_right"};
  const Outcome outcome = run_map(words);
  EXPECT_EQ(outcome.code, kExitPass) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("batch 1, head 0 of "));
  std::vector<std::string> empty = words;
  empty.insert(empty.end(), {"--batch", "0"});
  EXPECT_EQ(run_map(empty).code, kExitInconclusive);
}

// What an engine does with a problem that it cannot run says nothing.
TEST(MapCommand, DrawsNothingOfAProblemThatTheEngineCannotRun) {
  const Outcome outcome =
      run_map({"--engine", "plugin:" + plugin_path("template"), "--problem",
               "seq_len=5 head_dim=16 mask=causal_bottom_right softcap=2"});
  EXPECT_EQ(outcome.code, kExitInconclusive) << outcome.out;
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err, HasSubstr("softcap is not supported"));
}

// Not even with 0 does it decide on the exit code.
TEST(MapCommand, AnEngineThatEndsTheProcessIsNoPass) {
  for (const char* command : {"map", "check"}) {
    const ProgramOutcome outcome = run_program(
        shell_quote(ATTNGUARD_COMMAND) + " " + command +
        " --no-isolate --engine " +
        shell_quote("plugin:" + plugin_path("fatal")) + " --problem " +
        shell_quote("num_heads=2 head_dim=16 mask=causal_bottom_right "
                    "seq_len=80"));
    EXPECT_EQ(outcome.code, kExitEngineError) << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr("the engine ended the process"));
  }
}

}  // namespace
}  // namespace attnguard
