// One channel for all: where renaming ranks turns channels into each other, a folded run takes as long as the whole
// run, and where it does not, it is not folded.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/composed/channels.hpp"
#include "algorithms/trees/double_binary_tree.hpp"
#include "scenarios/scenario.hpp"
#include "scenarios/setup/setup.hpp"
#include "sim/network/network.hpp"
#include "sim/run/fold_renamed.hpp"
#include "sim/run/run.hpp"
#include "tests/support/tiny.hpp"

namespace fold_renamed_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Runs it both ways, and holds all that the folded run reports of times, bytes and messages against the whole one.
/// Returns the report's sentence on how it was folded, or why it was not.
std::string both_ways(const Topology& net, const CheckedSchedule& schedule, RunOptions options) {
  options.fold_from = 0;
  const Timeline some = run(net, schedule, options);
  options.fold = false;
  const Timeline all = run(net, schedule, options);
  CHECK_FALSE(all.folded);
  // Shares are sums in another order. In none of these cases does that move a time by a picosecond, but it may.
  constexpr std::int64_t rounding = 2;  // ps
  const auto apart = [](SimTime a, SimTime b) { return std::abs((a - b).count()); };
  CHECK(apart(some.finish, all.finish) <= rounding);
  REQUIRE(some.actor_finish.size() == all.actor_finish.size());
  for (std::size_t actor = 0; actor < all.actor_finish.size(); ++actor)
    CHECK(apart(some.actor_finish[actor], all.actor_finish[actor]) <= rounding);
  CHECK(some.transfers == all.transfers);
  CHECK(some.bytes_sent == all.bytes_sent);
  REQUIRE(some.link_bytes.size() == all.link_bytes.size());
  for (std::size_t link = 0; link < all.link_bytes.size(); ++link) CHECK(some.link_bytes[link] == all.link_bytes[link]);
  CHECK(some.fingerprint.has_value() != some.folded.has_value());
  return some.folded.value_or(some.not_folded);
}

/// NCCL's schedule of 64 KiB times `factor` over nodes.
struct Question {
  std::string node;
  int nodes = 3;
  std::string fabric = R"({"kind": "star", "link": {"bandwidth": "400 Gb/s", "latency": "150 ns"}})";
  std::string algorithm = "Tree", protocol = "Simple";
  std::int64_t bytes = 8 << 20;
  std::string more = {};

  std::string text() const {
    return fmt::format(R"({{"version": 1, "topology": {{"kind": "cluster", "node": "{}", "nodes": {}, "fabric": {}}},
        "library": {{"name": "nccl", "env": {{"NCCL_ALGO": "{}", "NCCL_PROTO": "{}"}}}}{},
        "collective": {{"op": "all_reduce", "bytes": "{} B"}}}})",
                       node, nodes, fabric, algorithm, protocol, more, bytes);
  }
};

std::string both_ways(const Question& question) {
  CAPTURE(question.text());
  const Scenario scenario = ScenarioFile::parse(question.text(), "s.json").point(0);
  const Setup setup = set_up(scenario);
  RunOptions options{.model = scenario.model,
                     .plans = {{.protocol = scenario.protocol, .transport = scenario.transport}},
                     .routing = setup.routing,
                     .placement = setup.collectives.front().ranks};
  return both_ways(setup.topology, schedule_of(scenario, setup.collectives.front(), nullptr), options);
}

constexpr const char* leaf_spine =
    R"({"kind": "leaf_spine", "nodes_per_leaf": 2, "spines": 8, "link": {"bandwidth": "400 Gb/s", "latency": "150 ns"}})";

/// GPUs that each have a cable to one switch, of these rates in GB/s.
Topology star(const std::vector<int>& rates) {
  TopologyBuilder builder;
  const NodeId middle = builder.add_node("switch0", NodeKind::network_switch);
  for (std::size_t g = 0; g < rates.size(); ++g)
    builder.add_cable(builder.add_gpu(fmt::format("gpu{}", g)), middle,
                      {.bandwidth = Bandwidth{std::int64_t{rates[g]} * 1'000'000'000}, .latency = 1us});
  return builder.build();
}
RunOptions on_gpus(const Topology& net, const char* protocol) {
  RunOptions options{.plans = {{.protocol = find_protocol(protocol)}}};
  for (std::uint32_t n = 0; n < net.n_nodes(); ++n)
    if (net.node({n}).kind == NodeKind::gpu) options.placement.push_back({n});
  return options;
}

}  // namespace

TEST_CASE("one channel of NCCL's trees stands for all where nodes have a NIC for each GPU") {
  for (const Question& each : std::vector<Question>{
           {.node = "dgx-h100"},
           {.node = "dgx-h100", .nodes = 5, .algorithm = "NVLSTree"},
           {.node = "dgx-h100", .nodes = 4, .fabric = leaf_spine, .algorithm = "NVLSTree"},
           {.node = "dgx-h100", .protocol = "LL128"},
           {.node = "dgx-a100", .protocol = "LL", .bytes = 1 << 20},
           {.node = "dgx-a100", .bytes = (8 << 20) - 12},  // chunks are rounded up to 16 B on the wire
           {.node = "azure-ndv4"}})
    CHECK(both_ways(each).starts_with("1 of 8 channels represents all: by the construction and proof of "));
  // With four NICs per GPU, each order of ranks has four channels.
  CHECK(has(both_ways({.node = "p5", .nodes = 2}), "4 of 32 channels represent all"));
}

TEST_CASE("channels are not renamed where they share cables, or the machine tells them apart") {
  // Half as many cables upward as NICs: two channels share each.
  const std::string half =
      R"({"kind": "leaf_spine", "nodes_per_leaf": 1, "spines": 4, "oversubscription": 2, "link": {"bandwidth": "400 Gb/s",
          "latency": "1 us"}})";
  CHECK(has(both_ways({.node = "dgx-h100", .nodes = 4, .fabric = half}), "a link carries several channels in one way"));
  // Chunks of 16,384 B and of 16,400 B on the wire.
  CHECK(has(both_ways({.node = "dgx-a100", .bytes = (8 << 20) + 12}), "are not equal in all channels"));
  // Two GPUs share each NIC, and four each CPU.
  CHECK(has(both_ways({.node = "dgx-1v", .nodes = 2}), "renaming ranks does not turn channels into each other"));
}

// Rings of six ranks on a star: the first one turned and mirrored is a group of renamings, on cables that are alike.
TEST_CASE("turned and mirrored rings are one, if all cables are alike, and random other orders are not") {
  const std::vector<std::vector<Actor>> turned{{0, 1, 2, 3, 4, 5}, {2, 3, 4, 5, 0, 1}, {4, 5, 0, 1, 2, 3},
                                               {5, 4, 3, 2, 1, 0}, {1, 0, 5, 4, 3, 2}, {3, 2, 1, 0, 5, 4}};
  // A tree, whose ranks differ, so that no rank stands for another.
  const auto trees = [](int channels, const std::vector<std::vector<Actor>>& orders) {
    return check(over_channels(double_tree_all_reduce(6, 6'000'000_B, 4), {.channels = channels}, orders));
  };
  const Topology even = star({10, 10, 10, 10, 10, 10}), odd = star({10, 10, 10, 9, 10, 10});
  for (const char* protocol : {"none", "simple", "ll128"}) {
    CAPTURE(protocol);
    CHECK(has(both_ways(even, trees(6, turned), on_gpus(even, protocol)), "1 of 6 channels represents all"));
    std::vector<std::vector<Actor>> twice = turned;
    twice.insert(twice.end(), turned.begin(), turned.end());
    CHECK(has(both_ways(even, trees(12, twice), on_gpus(even, protocol)), "2 of 12 channels represent all"));
    CHECK(has(both_ways(odd, trees(6, turned), on_gpus(odd, protocol)), "channels cross links that differ"));
    CHECK(has(both_ways(even, trees(5, {turned.begin(), turned.end() - 1}), on_gpus(even, protocol)),
              "the channels' orders are no turns of each other"));
  }
  RunOptions path = on_gpus(even, "simple");
  path.record_path = true;
  CHECK(has(both_ways(even, trees(6, turned), path), "the critical path is being recorded"));
  std::mt19937 random(7);
  for (int i = 0; i < 20; ++i) {
    std::vector<std::vector<Actor>> orders = turned;
    for (std::vector<Actor>& order : orders) std::shuffle(order.begin(), order.end(), random);
    both_ways(even, trees(6, orders), on_gpus(even, "simple"));  // whatever it says, it is as long
  }
}

// Ranks 0, 1 and 2 on one switch, the others on another: a ring that is turned by two crosses between them elsewhere.
TEST_CASE("turned rings are not one if a hop crosses switches in one of them only") {
  TopologyBuilder builder;
  const LinkSpec cable{.bandwidth = 10_GBps, .latency = 1us};
  const NodeId near = builder.add_node("switch0", NodeKind::network_switch);
  const NodeId far = builder.add_node("switch1", NodeKind::network_switch);
  for (int g = 0; g < 6; ++g) builder.add_cable(builder.add_gpu(fmt::format("gpu{}", g)), g < 3 ? near : far, cable);
  builder.add_cable(near, far, cable);
  const Topology net = builder.build();
  const CheckedSchedule trees = check(over_channels(double_tree_all_reduce(6, 6'000'000_B, 4), {.channels = 3},
                                                    {{0, 1, 2, 3, 4, 5}, {2, 3, 4, 5, 0, 1}, {4, 5, 0, 1, 2, 3}}));
  CHECK(has(both_ways(net, trees, on_gpus(net, "simple")), "channels have different paths"));
}

// Both channels of a GPU go over one cable: a renaming that is no change of ranks would leave it where it is, so both
// are simulated; and a rank that plays the same position in all channels is left to other folds.
TEST_CASE("a link that a renaming leaves where it is is not folded") {
  // Ranks 0 and 3 keep their places when the others change: their cables have no images.
  const std::vector<std::vector<Actor>> swapped{{0, 1, 2, 3, 4, 5}, {0, 2, 1, 3, 5, 4}};
  const Topology net = star({10, 10, 10, 10, 10, 10});
  const CheckedSchedule trees =
      check(over_channels(double_tree_all_reduce(6, 6'000'000_B, 4), {.channels = 2}, swapped));
  CHECK(has(both_ways(net, trees, on_gpus(net, "simple")), "a link carries several channels in one way"));
}

}  // namespace fold_renamed_test
