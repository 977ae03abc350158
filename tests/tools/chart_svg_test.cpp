// `ringsim plot`: stored results as a picture.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <pugixml.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/command.hpp"
#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"

namespace chart_svg_test {

using namespace ringsim::test;

namespace {

namespace fs = std::filesystem;
const char* const rings = R"({"version": 1, "name": "a < b & \"c\"",
  "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
  "collective": {"op": "all_reduce", "algorithm": ["ring", "recursive_doubling"], "bytes": ["1 KiB", "1 MiB", "1 GiB"]}})";

/// The results of the scenario, in a file of that format and name.
std::string results(const std::string& format, const Words& more = {}, const std::string& name = "results") {
  const std::string file = temporary_file("rings.json", rings), out = temporary_file(name, "");
  Words words{"run", file, "--format", format, "-o", out};
  words.insert(words.end(), more.begin(), more.end());
  const Outcome outcome = run_command(words);
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  return out;
}

std::string new_file(const std::string& name) {
  const std::string path = temporary_file(name, "");
  fs::remove(path);
  return path;
}

std::string picture(Words words) {
  const std::string out = new_file("x.svg");
  words.insert(words.begin(), "plot");
  words.insert(words.end(), {"-o", out});
  const Outcome outcome = run_command(words);
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(outcome.out == "");
  CHECK(outcome.err == "");
  return read_file(out);
}

Outcome refused(Words words, int code = 2) {
  words.insert(words.begin(), "plot");
  const Outcome outcome = run_command(words);
  CHECK(outcome.code == code);
  CHECK(outcome.out == "");
  return outcome;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
  return n;
}

}  // namespace

TEST_CASE("the picture of six points is the reviewed one, whatever format the results have") {
  const std::string golden = ringsim::test::source_dir() + "/tests/data/plots/six-points.svg";
  const std::string svg = picture({results("csv")});
  if (std::getenv("RINGSIM_ACCEPT_MESSAGES") != nullptr) {
    fs::create_directories(fs::path(golden).parent_path());
    std::ofstream(golden, std::ios::binary) << svg;
  }
  CHECK(svg == read_file(golden));
  for (const char* format : {"json", "jsonl"}) CHECK(picture({results(format)}) == svg);
}

TEST_CASE("a picture is XML that refers to nothing outside of itself, with text escaped") {
  const std::string svg = picture({results("csv"), "--title", "<script>\"&'\x1b[31m"});
  pugi::xml_document document;
  REQUIRE(document.load_string(svg.c_str()));
  const pugi::xml_node root = document.child("svg");
  CHECK(std::string(root.child("title").text().get()) == "<script>\"&'\\u001b[31m");
  CHECK(root.attribute("width").as_int() == 720);
  CHECK(!has(svg, "href"));
  CHECK(!has(svg, "url("));
  CHECK(!has(svg, "@import"));
  CHECK(count(svg, "://") == 1);  // the name of the SVG namespace
  CHECK(has(svg, "@media (prefers-color-scheme: dark)"));
}

TEST_CASE("points lie where their values are: logarithmic, larger is higher and further right") {
  const std::string svg = picture({results("csv"), "--y", "time_us"});
  pugi::xml_document document;
  REQUIRE(document.load_string(svg.c_str()));
  std::vector<std::pair<double, double>> ring;
  for (const auto& mark : document.select_nodes("//g[@class='s0']/path[@class='mark'][title]")) {
    const char* const path = mark.node().attribute("d").value();
    char* rest = nullptr;
    const double x = std::strtod(path + 1, &rest);
    ring.emplace_back(x, std::strtod(rest, nullptr));
  }
  REQUIRE(ring.size() == 3);
  CHECK(ring[1].first - ring[0].first == doctest::Approx(ring[2].first - ring[1].first).epsilon(0.001));  // 1024 each
  // 6 steps of 2 us, as a path has two links, and p/(4 b): 12.1536, 169.2864 and 161073.2736 us. Heights are as their
  // logarithms; coordinates have one decimal.
  const double low = std::log(169.2864 / 12.1536), high = std::log(161073.2736 / 169.2864);
  CHECK((ring[1].second - ring[2].second) / (ring[0].second - ring[1].second) ==
        doctest::Approx(high / low).epsilon(0.002));
  CHECK(has(svg, "<title>ring, 1 MiB: 169.3 us</title>"));
}

TEST_CASE("results of several files are overlaid, each with its name") {
  const std::string a = results("csv", {"--set", "collective.algorithm=ring"}, "a.csv");
  const std::string b =
      results("jsonl", {"--set", "collective.algorithm=ring", "--set", "topology.link.latency=9 us"}, "b.jsonl");
  const std::string svg = picture({a, b});
  CHECK(has(svg, ">a</text>"));
  CHECK(has(svg, ">b</text>"));
  CHECK(count(svg, "<title>a, ") == 3);
  // By algorithm both files are one series.
  const std::string out = new_file("y.svg");
  CHECK(has(refused({a, b, "--by", "algorithm", "-o", out}).err, "found two of \"ring\" at 1 KiB: file is a and b"));
  CHECK(!fs::exists(out));
}

TEST_CASE("the bound is drawn where results have it, and asked for in vain it is an error") {
  const std::string svg = picture({results("csv", {"--bound"}), "--bound"});
  CHECK(has(svg, ">bound of the machine</text>"));
  CHECK(count(svg, "class=\"bound\"") == 2);  // the line, and the legend's
  CHECK(!has(picture({results("csv", {"--bound"})}), "bound of the machine"));
  CHECK(has(refused({results("csv"), "--bound"}).err, "--bound: expected results with bound_us"));
}

TEST_CASE("the bound that is drawn is that of bandwidth or of latency, whichever is slower") {
  const std::string svg = picture({results("csv", {"--bound"}), "--bound", "--y", "time_us"});
  pugi::xml_document document;
  REQUIRE(document.load_string(svg.c_str()));
  double x[3], y[3];
  const std::string line =
      document.select_node("//g[@class='bound']/path[@class='line']").node().attribute("d").value();
  REQUIRE(std::sscanf(line.c_str(), "M%lf %lfL%lf %lfL%lf %lf", &x[0], &y[0], &x[1], &y[1], &x[2], &y[2]) == 6);
  // 1 KiB: 2 us through the switch, though its bytes (3/2 p/b) need but 0.1536 us; 1 MiB 157.2864 us; 1 GiB
  // 161061.2736.
  const double low = std::log(157.2864 / 2), high = std::log(161061.2736 / 157.2864);
  CHECK((y[1] - y[2]) / (y[0] - y[1]) == doctest::Approx(high / low).epsilon(0.002));
}

TEST_CASE("ideal scaling starts at the first point of a series and is as fast as x grows") {
  const std::string scenario = temporary_file("ranks.json", R"({"version": 1, "name": "ranks",
      "topology": {"kind": "star", "ranks": [2, 4, 8], "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
      "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 MiB"}})");
  const std::string rows = temporary_file("ranks.csv", "");
  REQUIRE(run_command({"run", scenario, "--format", "csv", "-o", rows}).code == 0);
  const std::string svg = picture({rows, "--x", "ranks", "--y", "time_us", "--ideal"});
  CHECK(has(svg, ">ideal scaling</text>"));
  pugi::xml_document document;
  REQUIRE(document.load_string(svg.c_str()));
  const auto points_of = [&](const char* series, double(&x)[3], double(&y)[3]) {
    const std::string path = fmt::format("//g[@class='{}']/path[@class='line']", series);
    const std::string line = document.select_node(path.c_str()).node().attribute("d").value();
    REQUIRE(std::sscanf(line.c_str(), "M%lf %lfL%lf %lfL%lf %lf", &x[0], &y[0], &x[1], &y[1], &x[2], &y[2]) == 6);
  };
  double x[3], y[3], its_x[3], its_y[3];
  points_of("bound", x, y);
  points_of("s0", its_x, its_y);
  CHECK(x[0] == its_x[0]);
  CHECK(y[0] == its_y[0]);
  // From 2 to 4 ranks the ring's time grows by 6 (2 us + 26.2144 us) / (2 (2 us + 52.4288 us)); the ideal halves twice.
  const double grows = std::log(6 * 28.2144 / (2 * 54.4288)), halves = std::log(2);
  CHECK((y[1] - y[0]) / (its_y[0] - its_y[1]) == doctest::Approx(halves / grows).epsilon(0.01));
  CHECK(y[2] - y[1] == doctest::Approx(y[1] - y[0]).epsilon(0.01));
  CHECK(has(refused({rows, "--x", "ranks", "--ideal"}).err,
            "--ideal: expected a time or a rate per second as --y, found \"busbw_GBps\""));
}

TEST_CASE("measured times are points of their own, as time and as bandwidth") {
  const std::string measured =
      temporary_file("measured.csv", "# collective: all_reduce\nbytes,time_us\n1024,10\n1048576,200\n");
  const std::string rows = results("csv", {"--measured", measured}, "with.csv");
  const std::string time = picture({rows, "--y", "time_us"});
  CHECK(has(time, "<title>measured, 1 KiB: 10 us</title>"));
  CHECK(has(time, "<title>measured, 1 MiB: 200 us</title>"));
  CHECK(has(picture({rows}), "<title>measured, 1 MiB: 7.864 GB/s</title>"));  // 2 * 3/4 of 1 MiB in 200 us
}

TEST_CASE("an output that is not ours stays, our own is replaced, and inputs are never written over") {
  const std::string rows = results("csv"), out = new_file("x.svg");
  CHECK(run_command({"plot", rows, "-o", out}).code == 0);
  CHECK(run_command({"plot", rows, "-o", out}).code == 0);
  const std::string page = new_file("x.html");
  CHECK(run_command({"plot", rows, "-o", page}).code == 0);
  CHECK(run_command({"plot", rows, "-o", page}).code == 0);
  const std::string theirs = temporary_file("theirs.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"/>\n");
  CHECK(has(refused({rows, "-o", theirs}).err, "use --force to overwrite it"));
  CHECK(read_file(theirs) == "<svg xmlns=\"http://www.w3.org/2000/svg\"/>\n");
  CHECK(run_command({"plot", rows, "-o", theirs, "--force"}).code == 0);
  CHECK(has(read_file(theirs), "made by ringsim"));
  CHECK(has(refused({rows, "-o", "x.pdf"}).err, "expected a name that ends in .svg, .png or .html, found \"x.pdf\""));
  refused({rows, "-o", "/no/such/folder/x.svg"}, 3);
}

TEST_CASE("files that are no results are refused where they go wrong") {
  const auto said = [](const std::string& text) { return refused({temporary_file("bad.csv", text)}, 3).err; };
  CHECK(has(said("notes\n"), "expected results of ringsim as JSON lines, JSON or CSV, found other text"));
  CHECK(has(said("scenario.name,bytes,time_us\nx,1\n"), "bad.csv:2: expected 3 fields, as in the first line, found 2"));
  CHECK(has(said("scenario.name,bytes,time_us\nx,1,fast\n"),
            "bad.csv:2: expected time_us to be a number of at least 0, found \"fast\""));
  CHECK(has(said("scenario.name,bytes,time_us\n\"x\ny\",1,-1\n"), "bad.csv:2: expected time_us"));
  CHECK(has(said("scenario.name,bytes,time_us\n\"x\"y,1,1\n"), "expected a comma or the end of the line"));
  CHECK(has(said("scenario.name,bytes,time_us\n\"x,1,1\n"), "expected a quote at the end of a field"));
  CHECK(has(said("scenario.name,bytes,bytes\n"), "expected every column only once, found one twice"));
  CHECK(has(said("scenario.name,bytes,time_us\n"), "expected results of ringsim, found none"));
  CHECK(has(said("{\n}\n"), "expected a document with \"results\""));
  CHECK(has(refused({"/no/such/file.csv"}, 3).err, "found no file of that name"));
}

TEST_CASE("axes and series have names in words, not those of columns") {
  const std::string decode = source_dir() + "/scenarios/examples/inference/llama3-70b-decode.csv";
  const std::string svg = picture({decode, "--x", "time_per_token_us", "--y", "tokens_per_s_per_gpu", "--by", "tp"});
  CHECK(has(svg, ">time per token</text>"));
  CHECK(has(svg, ">tokens/s per GPU</text>"));
  CHECK(has(svg, ">tp 2</text>"));
  const std::string servers = source_dir() + "/scenarios/examples/training/server-or-ring.csv";
  CHECK(
      has(picture({servers, "--x", "ranks", "--y", "communication_us", "--by", "algorithm"}), ">communication</text>"));
  // 102228128 B are 97.492 MiB.
  CHECK(has(picture({servers, "--x", "ranks", "--y", "time_us"}), ", 97.492 MiB</text>"));
}

}  // namespace chart_svg_test
