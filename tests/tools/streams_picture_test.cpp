// run --picture: the streams of a training step as a picture.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <pugixml.hpp>
#include <string>
#include <vector>

#include "tests/support/command.hpp"
#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"
#include "topologies/layout/text_width.hpp"

namespace streams_picture_test {

using namespace ringsim::test;

namespace {

/// Two layers with a bucket of 4 MB each on 4 ports of 10 GB/s, 2 us of latency: a bucket takes 6 (2 + 100) us. Forward
/// pass to 2 ms, backward pass of the second layer to 4, of the first to 6; update to 7 ms at the earliest.
std::string scenario(const std::string& more = "", const std::string& regime = R"("name": "ddp", "algorithm": "ring",
    "buckets": {"size": "4 MB", "first": "4 MB"})") {
  return temporary_file("step.json", fmt::format(R"({{"version": 1, "name": "two layers",
    "topology": {{"kind": "star", "ranks": 4, "link": {{"bandwidth": "10 GB/s", "latency": "1 us"}}}},
    "training": {{"steps": 2, "warmup": 1, "workload": {{"batch": 32, "layers": [
      {{"name": "l", "times": 2, "parameters": 1000000, "forward": "1 ms", "backward": "2 ms"}}]}},
      "optimizer": {{"name": "momentum", "time": "1 ms"}}, "regime": {{{}}}{}}}}})",
                                                 regime, more));
}

std::string new_picture() {
  return (std::filesystem::path(temporary_file("x", "")).parent_path() / "step.svg").string();
}

/// The picture that the command draws.
std::string picture_of(const std::string& file, std::vector<std::string> more = {}) {
  const std::string path = new_picture();
  std::vector<std::string> words{"run", file, "--picture", path};
  words.insert(words.end(), more.begin(), more.end());
  const Outcome outcome = run_command(words);
  CAPTURE(outcome.err);
  CHECK(outcome.code == 0);
  return read_file(path);
}

int count(const std::string& text, const std::string& part) {
  int n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("a step's picture has each task of each stream, and what of the communication nothing hides") {
  const std::string svg = picture_of(scenario());
  CHECK(svg.starts_with("<svg xmlns="));
  CHECK(has(svg, ">two layers: the last step</text>"));
  for (const char* title :
       {"forward l.0, 0 to 1 ms", "forward l.1, 1 ms to 2 ms", "backward l.1, 2 ms to 4 ms",
        "backward l.0, 4 ms to 6 ms", "update, 6.612 ms to 7.612 ms", "bucket 0, 4 ms to 4.612 ms, hidden",
        "bucket 1, 6 ms to 6.612 ms, exposed for 612 us", "bucket 1, 6 ms to 6.612 ms"}) {
    CAPTURE(title);
    CHECK(has(svg, fmt::format("<title>{}</title>", title)));
  }
  CHECK(count(svg, "<title>") == 1 + 8);  // the picture's own
  // The exposed tail is named on its bar, hatched there and in the legend, and in the sentence below.
  CHECK(has(svg, ">612 us</text>"));
  CHECK(count(svg, "<path class=\"hatch\"") == 2);
  CHECK(has(svg, ">exposed: communication while no kernel computes</text>"));
  CHECK(has(svg,
            ">612 us of 7.612 ms (8.0 %) are exposed: no kernel computes while an exchange is in progress or waits for "
            "a member.</text>"));
  CHECK(has(svg, ">rank 0 (gpu0) and 3 others do the same at the same time.</text>"));
  CHECK(svg == picture_of(scenario()));  // equal results, equal bytes
}

TEST_CASE("passes for weights have a color of their own in the picture of a step") {
  const std::string svg = picture_of(temporary_file("zero.json", R"({"version": 1, "name": "zero bubble",
      "topology": {"kind": "star", "ranks": 2, "link": {"bandwidth": "50 GB/s", "latency": "1 us"}},
      "training": {"workload": {"transformer": {"layers": 2, "hidden": 64, "heads": 4, "ffn": 256, "vocabulary": 100},
                                "sequence": 64, "micro_batch_size": 1, "global_batch_size": 2,
                                "compute": {"flops": "10 TFLOP/s", "efficiency": "50%"}},
                   "parallel": {"pipeline": 2, "schedule": "zero_bubble_h1"}, "optimizer": "adam", "steps": 1}})"));
  CHECK(has(svg, ">gradients of weights</text>"));
  CHECK(has(svg, "<title>weights layers.1 of micro-batch 1, "));
  CHECK(!has(svg, ">other</text>"));
}

TEST_CASE("one rank sends nothing, and nothing is exposed") {
  const std::string svg = picture_of(scenario(), {"--set", "topology.ranks=1"});
  CHECK(has(svg, "<title>backward l.0, 4 ms to 6 ms</title>"));
  CHECK(!has(svg, "exposed"));
  CHECK(count(svg, "<path class=\"hatch\"") == 0);
}

TEST_CASE("a picture of a step has a lane for each rank that differs") {
  // Rank 2 computes half as fast: its passes end at 12 ms, and the others wait.
  const std::string svg = picture_of(scenario(R"(, "slow": [{"rank": 2, "factor": 2}])"));
  CHECK(has(svg, ">rank 0 (gpu0): compute</text>"));
  CHECK(has(svg, ">rank 2 (gpu2): compute</text>"));
  CHECK(has(svg, "<title>forward l.1, 3 ms to 5 ms</title>"));
  CHECK(has(svg, ">rank 0 (gpu0) and 2 others do the same at the same time.</text>"));
}

TEST_CASE("a report on a training step has the picture of its streams, and the sentences as text") {
  const std::string path = new_picture() + ".html";
  REQUIRE(run_command({"run", scenario(), "--report", path}).code == 0);
  const std::string page = read_file(path);
  CHECK(has(page, ">The last step</h2>"));
  CHECK(has(page, "<title>the last step</title>"));
  CHECK(has(page, "<title>bucket 1, 6 ms to 6.612 ms, exposed for 612 us</title>"));
  CHECK(count(page, "<path class=\"hatch\"") == 2);
  CHECK(has(page,
            "<p>612 us of 7.612 ms (8.0 %) are exposed: no kernel computes while an exchange is in progress or waits "
            "for a member.</p>"));
  // A collective has no streams.
  REQUIRE(run_command({"run", source_dir() + "/scenarios/examples/explain/late-rank.json", "--report", path}).code ==
          0);
  CHECK(!has(read_file(path), "The last step"));
}

TEST_CASE("a folded run has the picture of the whole one") {
  // 2 steps of 5 buckets of 256 ranks: 1.3 million messages.
  const std::vector<std::string> large{"--set", "topology.ranks=256",
                                       "--set", "training.workload.layers.0.times=5",
                                       "--set", "training.workload.layers.0.parameters=1024000"};
  const std::string file = scenario();
  std::vector<std::string> whole = large;
  whole.push_back("--no-fold");
  const std::string svg = picture_of(file, large);
  CHECK(svg == picture_of(file, whole));
  CHECK(has(svg, ">rank 0 (gpu0) and 255 others do the same at the same time.</text>"));
}

TEST_CASE("ranks that stand for others, and runs that are void, leave the picture of the whole run") {
  // 64 GPUs in two stages: two ranks represent all, and calls meet others, so that a first run is void.
  const std::string plans = source_dir() + "/scenarios/examples/training/plans.json";
  const std::vector<std::string> one{"--set", R"(sweep={"training.parallel.recompute":["none"]})", "--set",
                                     R"(where=["training.parallel.recompute == 'none'"])"};
  const Outcome outcome = run_command({"run", plans, one[0], one[1], one[2], one[3]});
  CHECK(has(outcome.out, "96 calls overlapped with\n  others and were simulated together"));
  CHECK(has(outcome.out, "2 of 64 ranks represented all"));
  std::vector<std::string> whole = one;
  whole.push_back("--no-fold");
  const std::string svg = picture_of(plans, one);
  CHECK(svg == picture_of(plans, whole));
  CHECK(has(svg, ">rank 32 (node4.gpu0) and 31 others do the same at the same time.</text>"));
}

TEST_CASE("only a training step that all ranks have in common has a picture") {
  const auto error_of = [](const std::string& file, const std::string& path) {
    const Outcome outcome = run_command({"run", file, "--picture", path});
    CHECK(outcome.code != 0);
    return outcome.err;
  };
  CHECK(has(error_of(source_dir() + "/scenarios/examples/explain/late-rank.json", new_picture()),
            ": /collective: expected a training step, because the picture shows its streams"));
  CHECK(has(error_of(source_dir() + "/scenarios/examples/training/async-server.json", new_picture()),
            "expected a scenario with one point, found 16"));
  const std::string async = scenario("", R"("name": "parameter_server", "servers": 1, "mode": "async")");
  CHECK(has(error_of(async, new_picture()), ": /training/regime/mode: expected the mode sync for a picture of a step"));
  CHECK(has(error_of(scenario(), "step.gif"), "expected a name that ends in .svg or .png, found \"step.gif\""));
}

TEST_CASE("a step's picture breaks its legend and notes into lines that end within it") {
  const std::string svg =
      picture_of(source_dir() + "/scenarios/examples/training/data-parallel.json",
                 {"--set", "topology.ranks=4", "--set",
                  R"(training.regime={"name": "data_parallel", "algorithm": "direct", "loss": "1 ms"})"});
  pugi::xml_document document;
  REQUIRE(document.load_string(svg.c_str()));
  const double width = document.child("svg").attribute("width").as_double();
  int lines = 0;
  for (const auto& each : document.select_nodes("//text[starts-with(@class, 'small') and not(@text-anchor)]")) {
    const std::string text = each.node().text().get();
    CAPTURE(text);
    CHECK(each.node().attribute("x").as_double() + ringsim::layout::width_of(text, 11) < width);
    ++lines;
  }
  CHECK(lines >= 6 + 5);  // the legend's names, and three notes of which two are too long for a line
}

}  // namespace streams_picture_test
