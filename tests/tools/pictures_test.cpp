// `topology picture`, `schedule picture`, and the pictures of a report.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>
#include <string>
#include <vector>

#include "tests/support/command.hpp"
#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"

namespace pictures_test {

using namespace ringsim::test;

namespace {

namespace fs = std::filesystem;

/// One point on 8 ranks; 10 GB/s and 1 us.
std::string scenario(const std::string& topology, const std::string& algorithm = "\"ring\"",
                     const std::string& bytes = "8 MiB") {
  return temporary_file("s.json", fmt::format(R"({{"version": 1, "name": "a < b & \"c\"", "topology": {},
    "collective": {{"op": "all_reduce", "algorithm": {}, "bytes": "{}"}}}})",
                                              topology, algorithm, bytes));
}

const char* const link = R"("link": {"bandwidth": "10 GB/s", "latency": "1 us"})";
std::string star(int ranks) { return fmt::format(R"({{"kind": "star", "ranks": {}, {}}})", ranks, link); }

std::string new_file(const std::string& name) {
  const std::string path = temporary_file(name, "");
  fs::remove(path);
  return path;
}

std::string picture(const std::string& what, const std::string& file) {
  const std::string out = new_file("x.svg");
  const Outcome outcome = run_command({what, "picture", file, "-o", out});
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(outcome.out == "");
  return read_file(out);
}

std::string report(const std::string& file, const Words& more = {}) {
  const std::string out = new_file("x.html");
  Words words{"run", file, "--report", out};
  words.insert(words.end(), more.begin(), more.end());
  const Outcome outcome = run_command(words);
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  return read_file(out);
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
  return n;
}

/// The picture with that <title>, out of a page.
std::string svg_of(const std::string& page, const std::string& title) {
  const std::size_t at = page.find("<title>" + title + "</title>\n");
  REQUIRE(at != std::string::npos);
  const std::size_t begin = page.rfind("<svg ", at);
  return page.substr(begin, page.find("</svg>", at) + 6 - begin);
}

}  // namespace

TEST_CASE("a topology's picture is XML of its own, with text escaped, and equal each time") {
  const std::string file = scenario(star(4)), svg = picture("topology", file);
  pugi::xml_document document;
  REQUIRE(document.load_string(svg.c_str()));
  CHECK(std::string(document.child("svg").child("title").text().get()) == "a < b & \"c\"");
  CHECK(!has(svg, "href"));
  CHECK(!has(svg, "url("));
  CHECK(count(svg, "://") == 1);                                  // the name of the SVG namespace
  CHECK(count(svg, "@media (prefers-color-scheme: dark)") == 2);  // of plots, and of pictures
  CHECK(picture("topology", file) == svg);
}

TEST_CASE("a topology's picture names each device, and each link with both directions, rate and latency") {
  const std::string svg = picture("topology", scenario(star(4)));
  for (int i = 0; i < 4; ++i) {
    CHECK(has(svg, fmt::format("<title>gpu{}: GPU, rank {}</title>", i, i)));
    CHECK(has(svg, fmt::format("gpu{} -&gt; switch0: link, 10 GB/s, 1 us\nswitch0 -&gt; gpu{}: link", i, i)));
  }
  CHECK(count(svg, "<path class=\"line\" d=\"M") == 5);  // four cables, and the legend's line
  CHECK(has(svg, ">link, GPU to switch: 10 GB/s, 1 us (4 x)</text>"));
  CHECK(has(svg, ">4 GPUs, 1 switch</text>"));
}

TEST_CASE("links of two kinds do not look alike in one machine") {
  // A GH200 has NVLink-C2C to its CPU, that a memory; two sockets are joined by a link that is no memory.
  const auto machine = [](const std::string& node) {
    return picture("topology", scenario(fmt::format(R"({{"kind": "cluster", "node": "{}", "nodes": 2,
      "fabric": {{"kind": "star", {}}}}})",
                                                    node, link)));
  };
  const std::string grace = machine("gh200-one"), sockets = machine("dgx-1v");
  CHECK(has(grace, "<g class=\"s2 dashed\"><path class=\"line\""));  // in the legend: c2c
  CHECK(has(sockets, "<g class=\"s2\"><path class=\"line\""));       // nvlink
  CHECK(has(sockets, "<g class=\"s3\"><path class=\"line\""));       // memory
  CHECK(has(sockets, "<g class=\"s4\"><path class=\"line\""));       // socket
}

TEST_CASE("NVLinks of twice the rate are thick") {
  const std::string svg = picture("topology", scenario(R"({"kind": "cluster", "node": "dgx-1v", "nodes": 1})"));
  const std::size_t thick = svg.find("<g class=\"s2 thick\">");
  REQUIRE(thick != std::string::npos);
  // A DGX-1V has 8 pairs with two NVLinks and 8 with one; a line has a title of its own.
  CHECK(count(svg.substr(thick, svg.find("</g>", thick) - thick), "<title>") == 8);
  const std::size_t thin = svg.find("<g class=\"s2\">");
  CHECK(count(svg.substr(thin, svg.find("</g>", thin) - thin), "<title>") == 8);
}

TEST_CASE("512 GPUs make a picture of a part, and a report below 2 MB") {
  const std::string file = scenario(R"({"kind": "cluster", "node": "hgx-h100", "nodes": 64, "fabric": {"kind":
    "leaf_spine", "nodes_per_leaf": 8, "oversubscription": 2, "link": {"bandwidth": "400 Gb/s", "latency": "1 us"}}})",
                                    "\"hierarchical\"");
  const std::string svg = picture("topology", file);
  CHECK(svg.size() < 200'000);
  CHECK(has(svg, "; only a part is drawn</text>"));
  CHECK(has(svg, ">... 60 more nodes</text>"));
  const std::string page = report(file);
  CHECK(page.size() < 2'000'000);
  CHECK(count(svg_of(page, "links over time"), "<g><title>") == 40);
  CHECK(has(page, " more links carried data; none of them was busy more than "));
}

TEST_CASE("a node with a fault is drawn though others are not, with a mark, and listed with what it has") {
  const std::string file = temporary_file("faults.json", fmt::format(R"({{"version": 1, "name": "one slow NIC",
    "topology": {{"kind": "cluster", "node": "dgx-1v", "nodes": 16, "fabric": {{"kind": "star", {}}}}},
    "faults": [{{"link": "node9.nic2 -> leaf0", "bandwidth": "25%"}},
               {{"link": "node3.nic0", "state": "down", "at": "3 ms", "until": "5 ms"}}],
    "collective": {{"op": "all_reduce", "algorithm": "ring", "bytes": "1 MiB"}}}})",
                                                                     link));
  const std::string svg = picture("topology", file);
  CHECK(has(svg, ">node9</text>"));
  CHECK(has(svg, ">node3</text>"));
  CHECK(has(svg, ">node9.nic2 -&gt; leaf0: 25 %</text>"));
  CHECK(has(svg, ">node3.nic0: down from 3 ms until 5 ms</text>"));
  CHECK(!has(svg, "(not drawn)"));
  // Of node9 the cable to the leaf; of node3's NIC that and the one to its PCIe switch; two in the legend.
  CHECK(count(svg, "class=\"fault-mark\"") == 3 + 2);
  CHECK(count(svg, "; fault: 25 %") == 1);  // one direction
  const std::string page = report(file);
  CHECK(has(svg_of(page, "links by load"), ">node9.nic2 -&gt; leaf0: 25 %</text>"));
  // A grid shows its corner alone.
  const std::string torus = temporary_file("torus.json", fmt::format(R"({{"version": 1, "name": "t",
    "topology": {{"kind": "torus", "dimensions": [20, 20], {}}}, "faults": [{{"link": "gpu399", "bandwidth": "50%"}}],
    "collective": {{"op": "all_reduce", "algorithm": "ring", "bytes": "1 MiB"}}}})",
                                                                     link));
  CHECK(has(picture("topology", torus), ">gpu399: 50 % (not drawn)</text>"));
}

TEST_CASE("topology picture --bound marks the links of the bottleneck and says why, next to faults") {
  const std::string text = fmt::format(R"({{"version": 1, "name": "one slow NIC",
    "topology": {{"kind": "cluster", "node": "dgx-1v", "nodes": 16, "fabric": {{"kind": "star", {}}}}},
    "faults": [{{"link": "node9.nic2 -> leaf0", "bandwidth": "25%"}}],
    "collective": {{"op": "broadcast", "algorithm": "ring", "bytes": "1 MiB"}}}})",
                                       link);
  const std::string file = temporary_file("bottleneck.json", text), svg_file = new_file("bottleneck.svg");
  const Outcome outcome = run_command({"topology", "picture", file, "-o", svg_file, "--bound"});
  REQUIRE(outcome.code == 0);
  const std::string svg = read_file(svg_file);
  // The links are those of `ringsim bound`, each named where a pointer shows it.
  const auto bounds = nlohmann::json::parse(run_command({"bound", file, "--format", "json"}).out).at("bounds");
  const auto own =
      std::find_if(bounds.begin(), bounds.end(), [](const auto& b) { return b["collective"] == "broadcast"; });
  REQUIRE(own != bounds.end());
  CHECK(count(svg, "; sets the bound of broadcast") == own->at("cut").size());
  CHECK(count(svg, ">B</text>") > 1);  // on a link, and in the legend
  CHECK(count(svg, ">!</text>") == 2);
  CHECK(has(svg, ">broadcast, at most "));
  CHECK(!has(picture("topology", file), "broadcast"));
  const Outcome barrier =
      run_command({"topology", "picture", file, "-o", svg_file, "--force", "--bound", "--set",
                   R"(collective={"op": "barrier", "algorithm": "dissemination", "bytes": "0 B"})"});
  CHECK(barrier.code == 3);
  CHECK(has(barrier.err, "/collective/op: expected a collective that moves bytes, for --bound, found barrier"));
}

TEST_CASE("a picture replaces only pictures, and needs a name that ends in .svg or .png") {
  const std::string file = scenario(star(4)), text = temporary_file("x.svg", "mine");
  for (const char* what : {"topology", "schedule"}) {
    CAPTURE(what);
    const Outcome other = run_command({what, "picture", file, "-o", text});
    CHECK(other.code == 2);
    CHECK(has(other.err, "use --force to overwrite it"));
    CHECK(read_file(text) == "mine");
    const Outcome name = run_command({what, "picture", file, "-o", "x.gif"});
    CHECK(name.code == 2);
    CHECK(has(name.err, "expected a name that ends in .svg or .png, found \"x.gif\""));
    CHECK(run_command({what, "picture", file}).code == 2);  // -o is required
    CHECK(run_command({what, "picture", file, "-o", file}).code != 0);
    const Outcome out = run_command({what, "picture", file, "-o", "-"});
    CHECK(out.code == 0);
    CHECK(out.out.starts_with("<svg "));
    const std::string again = new_file("x.svg");
    CHECK(run_command({what, "picture", file, "-o", again}).code == 0);
    CHECK(run_command({what, "picture", file, "-o", again}).code == 0);
  }
}

TEST_CASE("a ring's schedule has a panel per step, an arrow per message, adds first") {
  const std::string svg = picture("schedule", scenario(star(4)));
  for (int step = 1; step <= 6; ++step) CHECK(has(svg, fmt::format(">step {}</text>", step)));  // 2(K-1)
  CHECK(!has(svg, ">step 7</text>"));
  CHECK(has(svg, ">24 messages in 6 steps</text>"));
  CHECK(count(svg, ", added</title>") == 12);  // the reduce-scatter's half of 6 x 4 messages
  CHECK(count(svg, "<g class=\"s0\"><path class=\"line\" d=\"M") == 12 + 1);  // the all-gather's, and the legend
  CHECK(has(svg, "<title>2 to 3: 2, added</title>"));                         // rank 2 begins with its own chunk
  pugi::xml_document document;
  CHECK(document.load_string(svg.c_str()));
}

TEST_CASE("of a long schedule 32 steps are drawn, of one with many ranks none") {
  CHECK(has(picture("schedule", scenario(star(16))), ">step 30</text>"));  // 2 (16 - 1)
  const std::string svg = picture("schedule", scenario(star(8), R"({"name": "ring", "slices": 3})"));
  CHECK(has(svg, ">step 32</text>"));
  CHECK(!has(svg, ">step 33</text>"));
  CHECK(has(svg, ">... and 10 more steps</text>"));  // of 3 x 2 (8 - 1)
  const Outcome many = run_command({"schedule", "picture", scenario(star(17)), "-o", new_file("x.svg")});
  CHECK(many.code == 3);
  CHECK(has(many.err, "expected at most 16 ranks and helpers to show, found 17"));
  CHECK(has(many.err, "try --set topology.ranks=8"));
}

// NCCL on a DGX A100: a ring of 8 in 12 channels, each with a chunk for each rank.
TEST_CASE("an arrow of many chunks says how many") {
  const std::string svg = picture("schedule", "dgx-a100");
  CHECK(has(svg, ">12 chunks</text>"));
  CHECK_FALSE(has(svg, ", ...</text>"));
  CHECK(has(svg, "<title>0 to 1: 0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, added</title>"));
}

TEST_CASE("helpers are drawn as h0, and schedule files as well") {
  const std::string servers = picture("schedule", scenario(star(3), R"({"name": "parameter_server", "servers": 1})"));
  CHECK(has(servers, "<title>0 to h0: 0, added</title>"));
  CHECK(has(servers, "<title>h0 to 0: 0</title>"));
  const std::string file = ringsim::test::source_dir() + "/tests/data/schedules/chain-3.xml";
  CHECK(has(picture("schedule", file), ">step 1</text>"));
  const Outcome set = run_command({"schedule", "picture", file, "--set", "a=1", "-o", new_file("x.svg")});
  CHECK(set.code == 3);
}

TEST_CASE("links of a report have the color of their load and say what they carried") {
  // A ring on a star: 14 steps of 1 MiB in 8 chunks, of 2 us and 104.8576 us each. Each direction of each of the 8
  // cables carries 14 chunks of 1 MiB: 14 MiB, busy for 104.8576 / 106.8576 = 98.1 % of the time.
  const std::string page = report(scenario(star(8))), svg = svg_of(page, "links by load");
  CHECK(count(svg, "; 14 MiB, busy 98.1 %") == 16);
  const std::size_t group = svg.find("<g class=\"l5\">\n");
  REQUIRE(group != std::string::npos);
  CHECK(count(svg.substr(group, svg.find("</g>", group) - group), "<title>") == 8);
  // The rows of the heat map: all 16 directions, busy throughout.
  const std::string heat = svg_of(page, "links over time");
  CHECK(count(heat, "<g><title>") == 16);
  CHECK(has(heat, "gpu0 -&gt; switch0: 98.1 %</title>"));
  CHECK(count(heat, "<g class=\"l5\"><path") == 16);
  // Rank 0, as good as any: 14 messages out, 14 in.
  const std::string gantt = svg_of(page, "the critical rank over time");
  CHECK(count(gantt, "<g class=\"s0\"><path class=\"mark\"") == 14);
  CHECK(count(gantt, "<g class=\"s2\"><path class=\"mark\"") == 14);
  CHECK(has(page, "<p>rank 0 (gpu0), which is on the critical path for the longest time"));
}

TEST_CASE("the critical rank is the one that holds the run back") {
  // Rank 2 is late by 5 ms, all of which the others wait for.
  const std::string file = temporary_file(
      "late.json",
      fmt::format(R"({{"version": 1, "topology": {}, "disturbance": {{"late": [{{"rank": 2, "by": "5 ms"}}]}},
    "collective": {{"op": "all_reduce", "algorithm": "ring", "bytes": "1 MiB"}}}})",
                  star(4)));
  const std::string page = report(file);
  CHECK(has(page, "<p>rank 2 (gpu2), which is on the critical path for the longest time"));
  CHECK(has(svg_of(page, "the critical rank over time"), "critical: waits"));
}

TEST_CASE("of many bars each pixel shows what takes most of its time") {
  // 300 ranks: rank 0 sends and receives 598 times, the critical path has 598 messages of two stretches, a latency and
  // the link's: 2392 bars.
  const std::string gantt = svg_of(report(scenario(star(300))), "the critical rank over time");
  CHECK(has(gantt, ">There are too many bars to draw individually: "));
  CHECK(count(gantt, "<title>") == 1);
  CHECK(count(gantt, "<path class=\"mark\"") <= 3 * 6);  // at most one per lane and color
  CHECK(gantt.size() < 100'000);
}

TEST_CASE("one rank moves nothing, and a run of too many messages is not recorded") {
  const std::string one = report(scenario(star(1)));
  CHECK(!has(one, "Links by load"));
  // 2 (n-1) n messages: 2,002,000 of 1001 ranks, more than 2 million. With chunks of one size all ranks do the same,
  // and one of them is simulated.
  const std::string many = report(scenario(star(1001), "\"ring\"", "1001 KiB"));
  CHECK(has(many, "<p>Links and ranks are not drawn because the run has 2002000 messages, more than the 2000000"));
  CHECK(!has(many, "Links by load"));
}

TEST_CASE("each link of a report leads to who used it, and when") {
  // A ring of 4: 6 steps of 8 MiB / 4; rank r sends to r+1, over gpu r -> switch0 and switch0 -> gpu r+1.
  const std::string page = report(scenario(star(4)));
  CHECK(count(page, "<a href=\"#link-") == 4);  // a cable for each GPU, both directions
  for (std::size_t at = 0; (at = page.find("<a href=\"#", at)) != std::string::npos; ++at) {
    const std::string anchor = page.substr(at + 10, page.find('"', at + 10) - at - 10);
    CHECK(count(page, fmt::format("<section class=\"choice\" id=\"{}\">", anchor)) == 1);
  }
  for (int r = 0; r < 4; ++r) {
    CHECK(count(page, fmt::format("<title>rank {} to rank {}: 6 messages, 12 MiB</title>", r, (r + 1) % 4)) == 2);
    CHECK(has(page, fmt::format("<p>gpu{} -&gt; switch0: 12 MiB, busy 99", r)));
  }
  // Where messages of a pair take turns on several ways nobody knows which took which.
  const std::string spread = report(temporary_file("spread.json", R"({"version": 1, "name": "spread",
    "topology": {"kind": "cluster", "node": "hgx-h100", "nodes": 2, "fabric": {"kind": "leaf_spine",
      "nodes_per_leaf": 1, "spines": 2, "link": {"bandwidth": "400 Gb/s", "latency": "1 us"}}},
    "network": {"routing": "flow_spray"}, "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 MiB"}})"));
  CHECK(!has(spread, "<a href"));
  CHECK(!has(spread, "Click a link"));
}

TEST_CASE("communication and computation of the critical rank have colors of their own") {
  const std::string gantt =
      svg_of(report(source_dir() + "/scenarios/examples/explain/exposed-bucket.json"), "the critical rank over time");
  CHECK(has(gantt, ">computes</text>"));
  CHECK(has(gantt, ">communicates</text>"));
  CHECK(has(gantt, "<g class=\"s3\"><path class=\"mark\""));
}

}  // namespace pictures_test
