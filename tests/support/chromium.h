// Pages in headless Chromium: what it complains about, what a script finds in
// them, and what they look like.
#ifndef ATTNGUARD_TESTS_SUPPORT_CHROMIUM_H_
#define ATTNGUARD_TESTS_SUPPORT_CHROMIUM_H_

#include <gtest/gtest.h>
#include <png.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/program.h"
#include "tests/support/required_engine.h"

namespace attnguard {

inline bool has_chromium() {
  static const bool found = run_program("chromium --version").code == 0;
  return found;
}

struct PageView {
  int width = 1200;
  int height = 2400;
  bool dark = false;
  std::string fragment;  // "#name"
};

// A picture of 8-bit RGB.
struct Picture {
  int width = 0, height = 0;
  std::vector<std::uint8_t> pixels;

  std::array<int, 3> at(double x, double y) const {
    const auto column = static_cast<int>(x), row = static_cast<int>(y);
    if (column < 0 || row < 0 || column >= width || row >= height)
      return {-1, -1, -1};
    const std::size_t first =
        (static_cast<std::size_t>(row) * static_cast<std::size_t>(width) +
         static_cast<std::size_t>(column)) *
        3;
    return {pixels[first], pixels[first + 1], pixels[first + 2]};
  }
};

// Empty where the file is not a PNG.
inline Picture read_png(const std::string& bytes) {
  Picture picture;
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()) == 0)
    return picture;
  image.format = PNG_FORMAT_RGB;
  picture.pixels.resize(PNG_IMAGE_SIZE(image));
  if (png_image_finish_read(&image, nullptr, picture.pixels.data(), 0,
                            nullptr) == 0)
    return {};
  picture.width = static_cast<int>(image.width);
  picture.height = static_cast<int>(image.height);
  return picture;
}

class Chromium {
 public:
  // The lines of the page's console; a page that is well has none.
  std::string console(const std::string& html, const PageView& view = {}) {
    std::string lines;
    std::istringstream stream(
        start(html, view, "--enable-logging=stderr --dump-dom").output);
    for (std::string line; std::getline(stream, line);)
      if (line.find("CONSOLE") != std::string::npos) lines += line + "\n";
    return lines;
  }

  // What the script puts into `answer`, run once the page is loaded; it finds
  // the page as `win` and `doc`. The page's own rule against scripts is taken
  // out of the copy that is asked.
  std::string ask(std::string html, const std::string& script,
                  const PageView& view = {}) {
    const std::size_t rule = html.find("<meta http-equiv");
    if (rule != html.npos) html.erase(rule, html.find("/>", rule) + 2 - rule);
    const bool narrow = view.width < kNarrowest;
    if (narrow) html = framed(html, view);
    html.insert(
        html.rfind("</body>"),
        "<script>addEventListener('load',()=>{let answer='';const win=" +
            std::string(narrow ? "frames[0]" : "window") +
            ",doc=win.document;" + script +
            ";document.title='[answer]'+answer+'[end]'})</script>");
    const std::string dom = start(html, view, "--dump-dom").output;
    const std::size_t begin = dom.rfind("<title>[answer]");
    const std::size_t end = dom.find("[end]</title>", begin);
    if (begin == dom.npos || end == dom.npos) return "no answer: " + dom;
    return dom.substr(begin + 15, end - begin - 15);
  }

  Picture screenshot(const std::string& html, const PageView& view = {}) {
    start(view.width < kNarrowest ? framed(html, view) : html, view,
          "--screenshot=" + folder_.file("page.png"));
    return read_png(folder_.read("page.png"));
  }

 private:
  // No window is narrower; narrower pages are shown in a frame, at its corner.
  static constexpr int kNarrowest = 500;

  static std::string framed(const std::string& html, const PageView& view) {
    std::string quoted;
    for (char c : html)
      quoted += c == '&' ? "&amp;" : c == '"' ? "&quot;" : std::string(1, c);
    return "<!DOCTYPE html><html><head><title>frame</title></head><body "
           "style='margin:0'><iframe style='border:0;width:" +
           std::to_string(view.width) +
           "px;height:" + std::to_string(view.height) + "px' srcdoc=\"" +
           quoted + "\"></iframe></body></html>";
  }

  ProgramOutcome start(const std::string& html, const PageView& view,
                       const std::string& options) {
    folder_.write("page.html", html);
    const std::string profile =
        folder_.file("profile" + std::to_string(++runs_));
    return run_program(
        "timeout 120 chromium --headless --no-sandbox --disable-gpu "
        "--disable-quic --no-first-run --disable-background-networking "
        "--disable-component-update --disable-sync --hide-scrollbars "
        "--user-data-dir=" +
        profile +
        " --window-size=" + std::to_string(std::max(view.width, kNarrowest)) +
        "," + std::to_string(view.height) +
        (view.dark ? " --blink-settings=preferredColorScheme=0 " : " ") +
        options + " 'file://" + folder_.file("page.html") + view.fragment +
        "'");
  }

  TestFolder folder_;
  int runs_ = 0;
};

}  // namespace attnguard

// Ends the test where there is no Chromium: skipped, or failed where
// ATTNGUARD_REQUIRE_ENGINES lists "chromium".
#define ATTNGUARD_NEED_CHROMIUM()                                        \
  if (!attnguard::has_chromium()) {                                      \
    if (attnguard::engine_is_required("chromium"))                       \
      FAIL() << "chromium not found; ci/setup.sh --engines installs it"; \
    GTEST_SKIP() << "skipped: chromium not found";                       \
  }                                                                      \
  static_assert(true)

#endif  // ATTNGUARD_TESTS_SUPPORT_CHROMIUM_H_
