// What devices take for work on their own data: additions, copies, and what a channel moves.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <string>

#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/plain_scenario.hpp"
#include "validate/closed_forms/form_of.hpp"
#include "validate/results/result.hpp"

namespace devices_test {

using namespace ringsim;
using namespace std::chrono_literals;
using ringsim::test::only;
using ringsim::test::Texts;

namespace {

/// A ring all-reduce of 40 MB over a star of four ranks at 10 GB/s, 1 us per link: 6 steps of 1002 us.
std::string on_star(const std::string& devices) {
  return R"({"version": 1,
  "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
  "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "40 MB"})" +
         (devices.empty() ? "" : ", \"devices\": " + devices) + "}";
}

Prediction predicted(const std::string& devices, const Texts& set = {}) { return predict(only(on_star(devices), set)); }
Picoseconds time(const std::string& devices, const Texts& set = {}) { return predicted(devices, set).time; }

/// Two ranks and a server that share what one memory carries, 10 GB/s.
std::string on_one_memory(const std::string& rates) {
  std::string nodes;
  for (const char* name : {"gpu0", "gpu1", "gpu2", "gpu3"})
    nodes += fmt::format(R"({{"name": "{}", "kind": "gpu", "rates": {}}}, )", name, rates);
  std::string links = R"({"from": "out", "to": "in", "bandwidth": "10 GB/s", "latency": "0 us", "one_way": true})";
  for (const char* name : {"gpu0", "gpu1", "gpu2", "gpu3"})
    for (const auto& [from, to] : {std::pair{name, "out"}, std::pair{"in", name}})
      links += fmt::format(
          R"(, {{"from": "{}", "to": "{}", "bandwidth": "100 TB/s", "latency": "0 us", "one_way": true}})", from, to);
  return fmt::format(R"({{"version": 1, "topology": {{"kind": "graph",
    "nodes": [{}{{"name": "out", "kind": "switch"}}, {{"name": "in", "kind": "switch"}}], "links": [{}]}},
    "collective": {{"op": "all_reduce", "algorithm": "ring", "bytes": "40 MB"}}}})",
                     nodes, links);
}

}  // namespace

TEST_CASE("each message that is added costs its receiver the start and its bytes, in every model and protocol") {
  // 3 of the 6 steps add 10 MB: 2 us, and 500 us at 20 GB/s.
  const std::string devices = R"({"gpu": {"reduce": "20 GB/s", "start": "2 us"}})";
  for (const char* model : {"ideal", "fair", "packet"}) {
    CAPTURE(model);
    CHECK(time(devices, {fmt::format("network.model={}", model)}) == 7518us);
  }
  // Simple takes 1.4 us more in each step on such links; 8 slots of 512 KiB let a message run ahead of its receiver.
  const Texts simple{"transport.protocol=simple", "transport.launch=0 us"};
  CHECK(time(devices, simple) - time("", simple) == 1506us);
  // LL has twice the bytes on the wire, and as much to add.
  const Texts ll{"transport.protocol=ll", "transport.launch=0 us"};
  CHECK(time(devices, ll) - time("", ll) == 1506us);
}

TEST_CASE("additions of one device share its rate") {
  // Rank 0 is the server: three messages of 40 MB are there after 12 ms and 2 us, and 120 MB are added at 20 GB/s.
  const Texts server{"collective.algorithm=parameter_server"};
  CHECK(time(R"({"gpu": {"reduce": "20 GB/s"}})", server) - time("", server) == 6ms);
}

TEST_CASE("one channel alone moves at its rate, and eight share the GPU's") {
  const auto with = [](int channels, const std::string& gpu) {
    return time(gpu, {fmt::format("transport.channels={}", channels)});
  };
  for (const char* model : {"fair", "packet"}) {
    CAPTURE(model);
    const std::string set = fmt::format("network.model={}", model);
    CHECK(time(R"({"gpu": {"channel": "2 GB/s"}})", {set}) == 30012us);  // 6 steps of 10 MB at 2 GB/s, and 2 us each
    CHECK(time(R"({"gpu": {"copy": "8 GB/s"}})", {set}) == 7512us);
  }
  CHECK(with(4, R"({"gpu": {"channel": "2 GB/s"}})") == 7512us);  // 8 GB/s together
  CHECK(with(8, R"({"gpu": {"channel": "2 GB/s"}})") == 6012us);  // 16 GB/s: the port's 10 decide
  CHECK(with(8, R"({"gpu": {"channel": "2 GB/s", "copy": "8 GB/s"}})") == 7512us);
}

TEST_CASE("additions over a memory that ranks share draw on it, each message as much as it takes alone") {
  // A step: four messages of 10 MB at 10 GB/s, 4 ms. An addition at 20 GB/s takes half as much of the memory: 2 ms for
  // four. 6 steps, of which 3 add.
  const Prediction found = predict(only(on_one_memory(R"({"reduce": "20 GB/s", "over": "out -> in"})")));
  CHECK(found.time == 30ms);
  CHECK(found.bottleneck->link == "out -> in");
  CHECK(predict(only(on_one_memory(R"({"reduce": "20 GB/s"})"))).time == 24ms + 3 * 500us);  // of its own
}

TEST_CASE("work over a memory takes of its bandwidth, not its latency, in packets too") {
  const auto time = [](const char* model) {
    const std::string text = on_one_memory(R"({"reduce": "20 GB/s", "over": "out -> in"})");
    return predict(only(text, {"topology.links.0.latency=100 us", fmt::format("network.model={}", model)})).time;
  };
  CHECK(time("fair") == 30600us);  // 6 steps are 100 us longer
  // Packets need not be whole at every hop at once: in each step at most the time of a packet differs.
  CHECK(std::abs((time("packet") - time("fair")).count()) <= 6 * 1'000'000);
}

TEST_CASE("a schedule's own channels have each their rate") {
  // A binary tree of seven ranks in each of two channels; most that a rank sends on one of them is 20 MB twice.
  const Texts trees{"topology.ranks=8", "collective.algorithm=double_binary_tree"};
  const Prediction found = predicted(R"({"gpu": {"channel": "2 GB/s"}})", trees);
  REQUIRE(found.bottleneck);
  bool second = false;
  for (const LinkGroup& group : found.links) second = second || (group.kind == "channel" && group.count > 8);
  CHECK(second);
}

TEST_CASE("the critical path is whole where additions are under way while it is cut short") {
  // Five relays add 32,000 segments: more elements than are kept before those that lead nowhere are dropped.
  const std::string set =
      R"(collective={"op": "reduce", "algorithm": {"name": "chain", "segments": 32000}, "bytes": "128 MB"})";
  const Prediction found = predict(
      only(on_star(R"({"gpu": {"reduce": "1 GB/s", "start": "2 us"}})"), {"topology.ranks=6", set}), {.explain = true});
  REQUIRE(found.explanation);
  Picoseconds sum{0};
  for (const ExplainedPart& part : found.explanation->parts) sum += part.time;
  CHECK(sum == found.time);
}

TEST_CASE("what a device does within itself can be the bottleneck, and is named as such") {
  const Prediction found = predicted(R"({"gpu": {"reduce": "1 GB/s"}})");
  CHECK(found.time == 6012us + 3 * 10ms);
  REQUIRE(found.bottleneck);
  CHECK(found.bottleneck->link.find(" (reduce)") != std::string::npos);
  CHECK(found.bottleneck->kind == "reduce");
  CHECK(found.bottleneck->busy == doctest::Approx(30000.0 / 36012).epsilon(1e-9));
}

TEST_CASE("a rate of nothing that happens changes no picosecond, and is said to change nothing") {
  const auto idle = [](const std::string& devices, const Texts& set = {}) {
    std::string all;
    for (const SettingEffect& each : predicted(devices, set).settings) all += each.idle;
    return all;
  };
  const Texts gather{"collective.op=all_gather"};
  CHECK(idle(R"({"gpu": {"reduce": "20 GB/s"}})", gather) == "no gpu reduces data in this run");
  CHECK(time(R"({"gpu": {"reduce": "20 GB/s"}})", gather) == time("", gather));
  CHECK(predicted(R"({"gpu": {"reduce": "20 GB/s"}})", gather).fingerprint == predicted("", gather).fingerprint);
  CHECK(idle(R"({"cpu": {"reduce": "20 GB/s"}})") == "no cpu reduces data in this run");
  CHECK(idle(R"({"gpu": {"start": "2 us"}})") == "it applies to additions and copies, and neither has a rate");
  CHECK(idle(R"({"gpu": {"reduce": "20 GB/s", "start": "2 us"}})").empty());
  CHECK(idle(R"({"gpu": {"post": "2 us"}})").empty());
  CHECK(idle(R"({"cpu": {"post": "2 us"}})") == "no cpu sends data to another host in this run");
  const std::string in_one_host = R"({"version": 1, "topology": {"kind": "cluster", "node": "dgx-a100", "nodes": 1},
    "collective": {"op": "all_gather", "algorithm": "ring", "bytes": "1 MiB"}, "devices": {"gpu": {"post": "2 us"}}})";
  const Prediction alone = predict(only(in_one_host)), without = predict(only(in_one_host, {"devices=null"}));
  CHECK(alone.settings.back().idle == "no gpu sends data to another host in this run");
  CHECK(alone.time == without.time);
}

TEST_CASE("rates of a kind of device change nothing if each has its own, which is said") {
  const Prediction found =
      predict(only(on_one_memory(R"({"reduce": "20 GB/s"})"), {R"(devices={"gpu": {"reduce": "1 GB/s"}})"}));
  REQUIRE(found.settings.size() == 1);
  CHECK(found.settings.front().idle == "each gpu has its own rates");
}

TEST_CASE("a closed form of devices that work in no time is not compared where they take time") {
  const std::vector<Result> rows = results_of(only(on_star(R"({"gpu": {"reduce": "20 GB/s"}})")), {});
  REQUIRE(rows.front().form);
  REQUIRE(rows.front().form->because.size() == 1);
  CHECK(rows.front().form->because[0] == "devices have individual rates");
}

TEST_CASE("rates that cannot be used are refused, with their place") {
  const auto complaint = [](const std::string& text, const Texts& set = {}) {
    return ringsim::test::complaint([&] { predict(only(text, set)); });
  };
  CHECK(complaint(on_star(R"({"gpu": {"channel": "2 GB/s"}})"), {"network.routing=flow_spray"})
            .find("/devices/gpu/channel: cannot be combined with routing flow_spray") != std::string::npos);
  CHECK(complaint(on_star(R"({"gpu": {"add": "2 GB/s"}})")).find("/devices/gpu/add") != std::string::npos);
  CHECK(complaint(on_one_memory(R"({"reduce": "20 GB/s", "over": "out -> inn"})"))
            .find("/topology/nodes/0/rates/over: expected a link") != std::string::npos);
  CHECK(complaint(on_one_memory(R"({"reduce": "20 GB/s", "over": "out"})"))
            .find("/topology/nodes/0/rates/over: expected a link, FROM -> TO, found the node \"out\"") !=
        std::string::npos);
  CHECK(complaint(on_one_memory(R"({"start": "2 us", "over": "out -> in"})"))
            .find("/topology/nodes/0/rates/over: expected reduce or copy as well, found neither") != std::string::npos);
  CHECK(complaint(on_star(R"({"cpu": {"reduce": "1000001 TB/s"}})"))
            .find("/devices/cpu/reduce: expected at most 1000000 TB/s, found \"1000001 TB/s\"") != std::string::npos);
  // What a device does within itself is no link that could fail.
  CHECK(complaint(on_star(R"({"gpu": {"reduce": "20 GB/s"}})"),
                  {R"x(faults=[{"link": "gpu0 (reduce)", "bandwidth": "50%"}])x"})
            .find("expected a link") != std::string::npos);
}

}  // namespace devices_test
