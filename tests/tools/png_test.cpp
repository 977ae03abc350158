// Pictures as PNG: `plot`, `topology picture`, `schedule picture` and `run --picture` with -o FILE.png.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <pugixml.hpp>
#include <string>
#include <utility>
#include <vector>
#ifdef RINGSIM_PNG
#include <png.h>
#endif

#include "tests/support/command.hpp"
#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"

namespace png_test {

using namespace ringsim::test;

namespace {

/// Of two algorithms, 1 KiB to 1 GiB.
std::string results() {
  const std::string file = temporary_file("rings.json", R"({"version": 1, "name": "rings",
    "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
    "collective": {"op": "all_reduce", "algorithm": ["ring", "recursive_doubling"], "bytes": ["1 KiB", "1 MiB", "1 GiB"]}})");
  const std::string out = temporary_file("rings.csv", "");
  REQUIRE(run_command({"run", file, "--format", "csv", "-o", out}).code == 0);
  return out;
}

std::string sibling(const std::string& path, const std::string& name) {
  return (std::filesystem::path(path).parent_path() / name).string();
}

[[maybe_unused]] std::string written(const Words& words, const std::string& path) {
  const Outcome outcome = run_command(words);
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(outcome.out == "");
  CHECK(outcome.err == "");
  return read_file(path);
}

}  // namespace

#ifdef RINGSIM_PNG

namespace {

struct Pixels {
  std::size_t width = 0, height = 0;
  std::vector<std::uint32_t> rgb;  ///< row by row: 0xRRGGBB

  /// The pixel in which the point lies.
  std::uint32_t at(double x, double y) const {
    return rgb.at(static_cast<std::size_t>(y) * width + static_cast<std::size_t>(x));
  }
  auto count(std::uint32_t color) const { return std::count(rgb.begin(), rgb.end(), color); }
};

/// By libpng, for which a wrong check sum of a chunk is at least a warning.
Pixels read_png(const std::string& png) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  REQUIRE(png_image_begin_read_from_memory(&image, png.data(), png.size()) != 0);
  image.format = PNG_FORMAT_RGB;
  std::vector<png_byte> bytes(PNG_IMAGE_SIZE(image));
  REQUIRE(png_image_finish_read(&image, nullptr, bytes.data(), 0, nullptr) != 0);
  CHECK(std::string(image.message) == "");
  Pixels pixels{.width = image.width, .height = image.height, .rgb = {}};
  for (std::size_t i = 0; i < bytes.size(); i += 3)
    pixels.rgb.push_back(static_cast<std::uint32_t>(bytes[i] << 16 | bytes[i + 1] << 8 | bytes[i + 2]));
  return pixels;
}

}  // namespace

TEST_CASE("a plot as PNG is the SVG, twice as large: each mark has its color where the SVG has the mark") {
  const std::string rows = results(), svg_file = sibling(rows, "x.svg"), png_file = sibling(rows, "x.png");
  const std::string svg = written({"plot", rows, "-o", svg_file}, svg_file);
  const Pixels pixels = read_png(written({"plot", rows, "-o", png_file}, png_file));
  pugi::xml_document document;
  REQUIRE(document.load_string(svg.c_str()));
  const pugi::xml_node root = document.child("svg");
  CHECK(pixels.width == 2 * root.attribute("width").as_uint());
  CHECK(pixels.height == 2 * root.attribute("height").as_uint());
  CHECK(pixels.at(1, 1) == 0xffffff);  // the page
  int marks = 0;
  for (const auto& [series, color] : {std::pair{"s0", 0x0072b2U}, {"s1", 0xd55e00U}}) {
    const std::string path = fmt::format("//g[@class='{}']/path[@class='mark'][title]", series);
    for (const auto& mark : document.select_nodes(path.c_str())) {
      double x = 0, y = 0;  // a circle's middle, and a square's
      REQUIRE(std::sscanf(mark.node().attribute("d").value(), "M%lf %lf", &x, &y) == 2);
      CAPTURE(series);
      CHECK(pixels.at(2 * x, 2 * y) == color);
      CHECK(pixels.at(2 * x, 2 * y + 14) != color);  // 7 px below, past the mark of 4
      ++marks;
    }
  }
  CHECK(marks == 6);
  // Letters: the title alone has some hundred pixels of their color that are wholly covered.
  CHECK(pixels.count(0x1f2328) > 100);
}

TEST_CASE("pictures of topologies, schedules and steps are PNG as well") {
  const std::string star = source_dir() + "/scenarios/star.json", out = sibling(temporary_file("x", ""), "x.png");
  const std::string svg_file = sibling(out, "x.svg");
  const auto check_size = [&](Words words, const char* option, std::uint32_t color) {
    CAPTURE(words.front());
    Words svg_words = words;
    words.insert(words.end(), {option, out});
    svg_words.insert(svg_words.end(), {option, svg_file});
    REQUIRE(run_command(words).code == 0);
    REQUIRE(run_command(svg_words).code == 0);
    const Pixels pixels = read_png(read_file(out));
    pugi::xml_document document;
    REQUIRE(document.load_string(read_file(svg_file).c_str()));
    CHECK(pixels.width == 2 * document.child("svg").attribute("width").as_uint());
    CHECK(pixels.height == 2 * document.child("svg").attribute("height").as_uint());
    CHECK(pixels.count(color) > 20);
  };
  check_size({"topology", "picture", star, "--set", "topology.ranks=4"}, "-o", 0x666666);  // cables
  check_size({"schedule", "picture", star, "--set", "topology.ranks=4", "--set", "collective.algorithm=ring"}, "-o",
             0x0072b2);
  // What nothing hides is vermilion, with white lines across.
  check_size({"run", source_dir() + "/scenarios/examples/explain/exposed-bucket.json"}, "--picture", 0xd55e00);
}

TEST_CASE("a PNG of ringsim's own is replaced, another is not") {
  const std::string rows = results(), out = sibling(rows, "x.png");
  std::string png = written({"plot", rows, "-o", out}, out);
  CHECK(has(png, std::string("tEXtSoftware\0ringsim", 20)));
  written({"plot", rows, "-o", out}, out);
  png[40] = 'N';  // of "Software"
  std::ofstream(out, std::ios::binary) << png;
  const Outcome refused = run_command({"plot", rows, "-o", out});
  CHECK(refused.code == 2);
  CHECK(has(refused.err, "use --force to overwrite it"));
  CHECK(read_file(out) == png);
  CHECK(run_command({"plot", rows, "-o", out, "--force"}).code == 0);
}

TEST_CASE("a picture with more pixels than a PNG may have is refused, and nothing is written") {
  // 900 series whose names each need a line of 22 px: the legend has 19800 px, twice that as PNG.
  std::string rows = "scenario.name,bytes,time_us,algorithm\n";
  for (int i = 0; i < 900; ++i)
    rows += fmt::format("x,1024,{},an algorithm with a name so long that each entry needs a line of its own {:04}\n",
                        i + 1, i);
  const std::string file = temporary_file("long.csv", rows), out = sibling(file, "x.png");
  const Outcome refused = run_command({"plot", file, "--y", "time_us", "--by", "algorithm", "-o", out});
  CHECK(refused.code == 3);
  CHECK(has(refused.err, "a PNG can have at most 32767 pixels in each direction, the picture has 1440 x "));
  CHECK(!std::filesystem::exists(out));
}

#else

TEST_CASE("a build without librsvg refuses the name of a PNG, and says what to do") {
  const std::string rows = results(), out = sibling(rows, "x.png");
  for (const Words& words :
       {Words{"plot", rows, "-o", out},
        {"topology", "picture", source_dir() + "/scenarios/star.json", "-o", out},
        {"schedule", "picture", source_dir() + "/scenarios/star.json", "-o", out},
        {"run", source_dir() + "/scenarios/examples/explain/exposed-bucket.json", "--picture", out}}) {
    const Outcome refused = run_command(words);
    CHECK(refused.code == 2);
    CHECK(has(refused.err, "this ringsim was built without PNG"));
    CHECK(has(refused.err, "write SVG, or install librsvg (Debian: librsvg2-dev pkg-config) and rebuild ringsim"));
    CHECK(!std::filesystem::exists(out));
  }
}

#endif

}  // namespace png_test
