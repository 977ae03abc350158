// The first ranks for all: where ranks a number of ranks apart do the same, a folded run reports what the whole run
// reports, and where they might not, it is not folded.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/composed/channels.hpp"
#include "algorithms/ring.hpp"
#include "scenarios/scenario.hpp"
#include "scenarios/setup/setup.hpp"
#include "sim/network/network.hpp"
#include "sim/run/run.hpp"
#include "tests/support/timeline_text.hpp"
#include "tests/support/tiny.hpp"

namespace fold_turns_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

constexpr const char* star_fabric = R"({"kind": "star", "link": {"bandwidth": "200 Gb/s", "latency": "150 ns"}})";
constexpr const char* leaf_spine =
    R"({"kind": "leaf_spine", "nodes_per_leaf": 2, "spines": 2, "link": {"bandwidth": "200 Gb/s", "latency": "150 ns"}})";
constexpr const char* fat_tree =
    R"({"kind": "fat_tree", "k": 8, "link": {"bandwidth": "25 GB/s", "latency": "90 ns"}})";

#ifdef RINGSIM_SANITIZED  // which makes runs ten times slower
const std::vector<int> some_nodes = {2}, more_nodes = {2, 4};
#else
const std::vector<int> some_nodes = {2, 4}, more_nodes = {2, 4, 8};
#endif

/// A collective on a cluster, all but its fabric in a few words.
struct Question {
  std::string node = "dgx-a100";
  int nodes = 4;
  std::string fabric = star_fabric;
  std::string protocol;  ///< of the library; empty: none of either
  int channels = 8;      ///< without the library; with it if `sets_channels`, else they are its own
  bool sets_channels = false;
  std::string op = "all_reduce";
  std::int64_t bytes = 1 << 20;

  std::string text() const {
    std::string text = fmt::format(R"({{"version": 1, "topology": {{"kind": "cluster", "node": "{}", "nodes": {},
        "fabric": {}}}, )",
                                   node, nodes, fabric);
    if (protocol.empty())
      text += fmt::format(R"("transport": {{"channels": {}, "nics": "per_channel"}}, "collective": {{"op": "{}",
          "algorithm": "ring", "order": "channel_rings", "bytes": "{} B"}}}})",
                          channels, op, bytes);
    else
      text += fmt::format(
          R"("library": {{"name": "nccl", "env": {{"NCCL_ALGO": "Ring", "NCCL_PROTO": "{}"{}}}}},
          "collective": {{"op": "{}", "bytes": "{} B"}}}})",
          protocol,
          sets_channels ? fmt::format(R"(, "NCCL_MIN_NCHANNELS": {0}, "NCCL_MAX_NCHANNELS": {0})", channels) : "", op,
          bytes);
    return text;
  }
};

/// All that a run needs.
struct Case {
  explicit Case(const Question& question)
      : scenario(ScenarioFile::parse(question.text(), "s.json").point(0)),
        setup(set_up(scenario)),
        schedule(schedule_of(scenario, setup.collectives.front(), nullptr)),
        options{.model = scenario.model,
                .plans = {{.protocol = scenario.protocol, .transport = scenario.transport}},
                .routing = setup.routing,
                .placement = setup.collectives.front().ranks,
                .fold_from = 0} {}

  Scenario scenario;
  Setup setup;
  CheckedSchedule schedule;
  RunOptions options;
};

/// Runs it both ways. Returns the report's sentence on how it was folded, or why it was not.
std::string both_ways(const Topology& net, const CheckedSchedule& schedule, RunOptions options) {
  const Timeline some = run(net, schedule, options);
  options.fold = false;
  const Timeline all = run(net, schedule, options);
  CHECK_FALSE(all.folded);
  CHECK(all.fingerprint.has_value());
  CHECK(report_of(net, some) == report_of(net, all));
  CHECK(some.folded.has_value() == some.not_folded.empty());
  CHECK(some.fingerprint == (some.folded ? std::nullopt : all.fingerprint));
  return some.folded.value_or(some.not_folded);
}
std::string both_ways(const Question& question) {
  CAPTURE(question.text());
  const Case one(question);
  return both_ways(one.setup.topology, one.schedule, one.options);
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// True if a node of 8 ranks stands for all.
bool is_one_node(const std::string& said, int nodes) {
  return said.starts_with(fmt::format("8 of {} ranks represent all: rank r + 8 does what r does, ", 8 * nodes));
}

}  // namespace

// Five GPUs on five switches in a circle. In the first channel a rank sends to the next switch, so all cables in its
// direction are images of each other; in the second it sends to the one after that, over two of them.
TEST_CASE("a path that takes a link and its image is not folded by turns") {
  TopologyBuilder builder;
  for (int g = 0; g < 5; ++g) builder.add_gpu(fmt::format("gpu{}", g));
  std::vector<NodeId> switches;
  const LinkSpec cable{.bandwidth = 10_GBps, .latency = 1us};
  for (std::uint32_t g = 0; g < 5; ++g) {
    switches.push_back(builder.add_node(fmt::format("s{}", g), NodeKind::network_switch));
    builder.add_cable(NodeId{g}, switches[g], cable);
  }
  for (std::size_t s = 0; s < 5; ++s) builder.add_cable(switches[s], switches[(s + 1) % 5], cable);
  const Topology net = builder.build();
  RunOptions options{.plans = {{.protocol = find_protocol("simple")}}, .fold_from = 0};
  for (std::uint32_t rank = 0; rank < 5; ++rank) options.placement.push_back(NodeId{rank});
  const Schedule rings =
      over_channels(ring_all_reduce(5, 10'000'000_B), {.channels = 2}, {{0, 1, 2, 3, 4}, {0, 2, 4, 1, 3}});
  const Timeline t = run(net, check(rings), options);
  CHECK_FALSE(t.folded);
  CHECK(t.not_folded ==
        "with protocol simple, ranks can run ahead of each other; the first ranks do not represent all ranks either: "
        "the path of gpu0 to gpu2 uses similar links twice; one channel does not represent all channels either: ranks "
        "have different positions in different channels; renaming ranks does not turn channels into each other either: "
        "the channels' orders are no turns of each other");
}

TEST_CASE("rings of channels over nodes are folded to one node, and the same to the picosecond") {
  for (const char* node : {"dgx-a100", "hgx-h100"})
    for (const int nodes : more_nodes)
      for (const int channels : {2, 8})
        for (const char* op : {"all_reduce", "all_gather", "reduce_scatter"})
          for (const std::int64_t bytes : {std::int64_t{1} << 20, std::int64_t{64} * 8 * 30'011})
            CHECK(is_one_node(both_ways({.node = node, .nodes = nodes, .channels = channels, .op = op, .bytes = bytes}),
                              nodes));
}

TEST_CASE(
    "NCCL's rings are folded under its protocols where no order is left to decide, and the same to the picosecond") {
  int n = 0, n_folded = 0, n_unsure = 0, n_unequal = 0;
  for (const char* node : {"dgx-a100", "hgx-h100"})
    for (const int nodes : some_nodes)
      for (const char* protocol : {"LL", "LL128", "Simple"})
        for (const char* op : {"all_reduce", "all_gather", "reduce_scatter"})
          for (const std::int64_t bytes : {1 << 16, 1 << 20, 16'000'000, 1 << 25}) {
            const Question question{.node = node, .nodes = nodes, .protocol = protocol, .op = op, .bytes = bytes};
            const std::string said = both_ways(question);
            CAPTURE(question.text());
            CAPTURE(said);
            ++n;
            n_folded += is_one_node(said, nodes) ? 1 : 0;
            n_unsure += has(said, "of equally long critical paths some have their time divided otherwise") ? 1 : 0;
            n_unequal += has(said, " are not equal chunks") ? 1 : 0;
          }
  CHECK(n_folded + n_unsure + n_unequal == n);
  CHECK(n_folded > n / 3);
}

TEST_CASE("on fabrics of several switches more ranks may have to stand for all, but the times stay") {
  int n_by_leaf = 0, n_by_node = 0;
  for (const char* fabric : {leaf_spine, fat_tree})
    for (const int nodes : more_nodes)
      for (const char* protocol : {"", "LL128", "Simple"})
        for (const std::int64_t bytes : {1 << 20, 1 << 24}) {
          const std::string said = both_ways({.nodes = nodes, .fabric = fabric, .protocol = protocol, .bytes = bytes});
          n_by_node += is_one_node(said, nodes) ? 1 : 0;
          n_by_leaf += said.starts_with(fmt::format("16 of {} ranks represent all: ", 8 * nodes)) ? 1 : 0;
        }
  CHECK(n_by_node > 0);
  CHECK(n_by_leaf > 0);
}

TEST_CASE("1024 ranks over 8 channels take the time that they take without folding") {
  const Case one({.nodes = 128, .protocol = "LL128", .bytes = 1 << 28});
  const Timeline timeline = run(one.setup.topology, one.schedule, one.options);
  CHECK(is_one_node(timeline.folded.value_or(timeline.not_folded), 128));
  CHECK(timeline.transfers == 16'760'832);
  CHECK(timeline.duration() == Picoseconds{7'422'161'455});  // as without folding
}

TEST_CASE("channels with a rate of their own fold, as long as all ranks have it, and devices that add up do not") {
  // A channel of a dgx-a100 has a NIC of 25 GB/s: 7 GB/s hold it, 40 do not.
  for (const Bandwidth rate : {7_GBps, 40_GBps}) {
    const Case one({.nodes = 4});
    const auto said = [&](auto rates) {
      return both_ways(one.setup.topology.with_rates(rates, 8), one.schedule, one.options);
    };
    using Rates = std::optional<DeviceRates>;
    CHECK(is_one_node(said([&](NodeId) { return Rates({.channel = rate}); }), 4));
    RunOptions one_nic = one.options;
    one_nic.plans.front().transport.nics = Transport::Nics::nearest;
    const Topology rated = one.setup.topology.with_rates([&](NodeId) { return Rates({.channel = rate}); }, 8);
    CHECK(both_ways(rated, one.schedule, one_nic).find(" represent all") != std::string::npos);
    CHECK(has(said([&](NodeId) { return Rates({.reduce = 100_GBps, .channel = rate}); }), "devices add or copy"));
    const NodeId first = one.options.placement.front();
    CHECK(has(said([&](NodeId id) { return Rates({.channel = id == first ? 6_GBps : rate}); }), "is not like"));
  }
}

TEST_CASE("a plain ring over nodes is folded to one node as well") {
  for (const int nodes : {2, 3, 8}) {
    const Case one({.nodes = nodes, .channels = 1});
    for (const std::int64_t bytes : {std::int64_t{nodes} * 8 * 4096, std::int64_t{0}}) {
      const CheckedSchedule ring = check(ring_all_reduce(8 * nodes, {bytes}));
      CHECK(is_one_node(both_ways(one.setup.topology, ring, one.options), nodes));
    }
  }
}

TEST_CASE("one slower link, or one that is farther, is enough to simulate all ranks") {
  const Case one({.nodes = 4});
  CHECK(is_one_node(both_ways(one.setup.topology, one.schedule, one.options), 4));
  for (const bool slower : {true, false}) {
    const Topology& whole = one.setup.topology;
    const Topology net = whole.with_links([&](Link& link) {
      if (whole.node(link.from).name != "node2.nic3" || whole.node(link.to).kind != NodeKind::network_switch) return;
      if (slower)
        link.bandwidth.bytes_per_second -= 1;
      else
        link.latency += Picoseconds{1};
    });
    const std::string said = both_ways(net, one.schedule, one.options);
    CAPTURE(said);
    CHECK((has(said, " is not like that of ") || has(said, " in different ways")));
  }
}

TEST_CASE("hosts with a GPU each are folded to one of them, and not if a cable differs in its speed or its length") {
  const auto said = [](std::int64_t less, Picoseconds more) {
    TopologyBuilder builder;
    const NodeId hub = builder.add_node("leaf", NodeKind::network_switch);
    for (std::uint32_t host = 0; host < 8; ++host) {
      const NodeId gpu = builder.add_gpu(fmt::format("gpu{}", host), host);
      const NodeId nic = builder.add_node(fmt::format("nic{}", host), NodeKind::nic, host);
      builder.add_cable(gpu, nic, {.bandwidth = 12_GBps, .latency = 300ns, .kind = LinkKind::pcie});
      const std::int64_t speed = 10'000'000'000 - (host == 5 ? less : 0);
      const Picoseconds latency = Picoseconds{1us} + (host == 5 ? more : Picoseconds{0});
      builder.add_cable(nic, hub, {.bandwidth = {speed}, .latency = latency, .kind = LinkKind::infiniband});
    }
    return both_ways(builder.build(), check(ring_all_reduce(8, 840_KiB)),
                     {.plans = {{.protocol = find_protocol("simple")}}, .fold_from = 0});
  };
  CHECK(said(0, Picoseconds{0}).starts_with("1 of 8 ranks represent all: rank r + 1 does what r does, "));
  CHECK(has(said(1, Picoseconds{0}), " is not like that of "));
  CHECK(has(said(0, Picoseconds{1}), " is not like that of "));
}

TEST_CASE("rings that do not go from node to node in one order are simulated in full") {
  const Case one({.nodes = 4, .channels = 1});
  std::vector<Actor> order(32);
  std::iota(order.begin(), order.end(), 0);
  const auto said = [&] {
    return both_ways(one.setup.topology, check(over_channels(ring_all_reduce(32, 1_MiB), {.channels = 1}, {order})),
                     one.options);
  };
  CHECK(is_one_node(said(), 4));
  std::swap(order[17], order[18]);  // within node 2
  CHECK(has(said(), "the order of channel 0 does not repeat"));
}

TEST_CASE("NCCL's rings are folded where chunks differ by a byte that is rounded up on the wire, and only there") {
  int n_folded = 0;
  for (const char* protocol : {"LL", "LL128", "Simple"})
    for (const int channels : {2, 5, 8})
      for (const int nodes : some_nodes) {
        Question question{
            .nodes = nodes, .protocol = protocol, .channels = channels, .sets_channels = true, .bytes = 1 << 22};
        // A chunk per rank and channel: of 16000 + `over` bytes, but for seven of a byte more.
        const int n = 8 * nodes * channels;
        REQUIRE(Case(question).schedule.schedule().layout[0].n_chunks() == n);
        for (const int over : {0, 1, 7, 14, 15}) {
          question.bytes = std::int64_t{n} * (16 * 1000 + over) + 7;
          const std::string said = both_ways(question);
          CAPTURE(question.text());
          CAPTURE(said);
          // 16000 is a multiple of 16 and stays, 16001 becomes 16016, as do 16001 and 16002, or 16015 and 16016.
          const bool is_unlike = over == 0;
          CHECK(has(said, " are not equal chunks") == is_unlike);
          if (is_unlike) continue;
          const bool is_unsure = has(said, "of equally long critical paths some have their time divided otherwise");
          CHECK(is_one_node(said, nodes) != is_unsure);
          n_folded += is_unsure ? 0 : 1;
        }
      }
  CHECK(n_folded > 0);
}

TEST_CASE("a protocol that rounds messages up folds any ring whose chunks it makes equal") {
  const Case one({.nodes = 2, .channels = 1});
  Protocol protocol = *find_protocol("simple");
  RunOptions options = one.options;
  options.plans.front().protocol = &protocol;
  const auto said = [&](std::int64_t align, std::int64_t bytes) {
    protocol.align = {align};
    return both_ways(one.setup.topology, check(ring_all_reduce(16, {bytes})), options);
  };
  // 16 chunks of 6250 and 6251 bytes.
  CHECK(has(said(1, 100'003), "100003 bytes in 16 chunks are not equal chunks"));
  CHECK(has(said(2, 100'003), " are not equal chunks"));  // 6250 and 6252
  CHECK(is_one_node(said(4, 100'003), 2));                // 6252
  // Three chunks of a byte, the others have none: what is empty stays so.
  CHECK(has(said(16, 3), " are not equal chunks"));
}

TEST_CASE("chunks that are not equally large from node to node are simulated in full") {
  CHECK(has(both_ways({.bytes = 1'000'003}), "1000003 bytes in 256 chunks are not equal chunks"));
  // Equal from one half of the ranks to the other: 32 chunks of each channel have an odd number of bytes between two.
  const std::string said = both_ways({.channels = 1, .bytes = 32 * 1000 + 2});
  CAPTURE(said);
  CHECK(said.starts_with("16 of 32 ranks represent all: "));
}

TEST_CASE("what the argument does not cover is simulated in full") {
  Case one({.nodes = 2, .protocol = "LL", .bytes = 1 << 16});
  const auto said = [&](auto change) {
    RunOptions options = one.options;
    change(options);
    return both_ways(one.setup.topology, one.schedule, options);
  };
  CHECK(is_one_node(said([](RunOptions&) {}), 2));
  CHECK(has(said([](RunOptions& options) { options.record_path = true; }), "the critical path is being recorded"));
  CHECK(has(said([](RunOptions& options) { options.record_spans = true; }), "every message is being recorded"));
  CHECK(has(said([](RunOptions& options) { options.on_message = [](const Span&) {}; }),
            "every message is being recorded"));
  CHECK(has(said([](RunOptions& options) { options.model = NetworkModel::ideal; }), "the network model is ideal"));
  CHECK(has(said([](RunOptions& options) { options.routing.policy = Routing::Policy::packet_spray; }),
            "messages are spread over several ways"));
  CHECK(has(said([&](RunOptions& options) {
              options.jobs.assign(static_cast<std::size_t>(one.schedule.schedule().lanes), 0);
            }),
            "several jobs share the run"));
  CHECK(has(said([](RunOptions& options) { options.disturbance.late.push_back({.actor = 3, .by = SimTime{5us}}); }),
            "something disturbs the run"));
  // One channel, for of several one would stand for all (fold_renamed_test.cpp).
  CHECK(has(both_ways({.protocol = "LL", .channels = 1, .sets_channels = true, .bytes = 3 << 20}),
            "a message can start before it has all of its ll "));
}

// Two rings go round K switches in opposite directions. Into each switch go two messages at one instant, over a link
// that has just the room for both: which of them starts first differs where the ranks wrap round, what holds them may
// not.
TEST_CASE("rings in both directions report what holds them alike, folded and not") {
  for (const int slow : {0, 1}) {
    for (const int hosts : {3, 4, 8}) {
      TopologyBuilder builder;
      for (int g = 0; g < 2 * hosts; ++g) builder.add_gpu(fmt::format("gpu{}", g));
      const NodeId core = builder.add_node("core", NodeKind::network_switch);
      const auto gpu = [](int g) { return NodeId{static_cast<std::uint32_t>(g)}; };
      std::vector<Actor> up;
      for (int h = 0; h < hosts; ++h) {
        const NodeId leaf = builder.add_node(fmt::format("leaf{}", h), NodeKind::network_switch);
        for (const int g : {0, 1}) {
          builder.add_link(gpu(2 * h + g), leaf, {.bandwidth = 40_GBps, .latency = g == slow ? 3us : 2us});
          builder.add_link(leaf, gpu(2 * h + g), {.bandwidth = 10_GBps, .latency = 2us});
        }
        builder.add_link(leaf, core, {.bandwidth = 80_GBps, .latency = 2us});
        builder.add_link(core, leaf, {.bandwidth = 20_GBps, .latency = 2us});
        builder.add_cable(gpu(2 * h), gpu(2 * h + 1), {.bandwidth = 400_GBps, .latency = 1us});
        up.insert(up.end(), {2 * h + 1, 2 * h});
      }
      const Topology net = builder.build();
      const CheckedSchedule rings =
          check(over_channels(ring_all_reduce(2 * hosts, Bytes{std::int64_t{4} * hosts * 100'000}), {.channels = 2},
                              {up, {up.rbegin(), up.rend()}}));
      RunOptions options{.fold_from = 0};
      const Timeline some = run(net, rings, options);
      options.fold = false;
      const Timeline all = run(net, rings, options);
      CAPTURE(slow);
      CAPTURE(hosts);
      REQUIRE(some.folded);
      REQUIRE(some.bottleneck);
      REQUIRE(all.bottleneck);
      CHECK(some.duration() == all.duration());
      CHECK(some.bottleneck->busy == all.bottleneck->busy);
      CHECK(some.bottleneck->latency == all.bottleneck->latency);
    }
  }
}

TEST_CASE("a network that must not depend on an order says when the last bits of a rate decide on a picosecond") {
  TopologyBuilder builder;
  std::vector<NodeId> gpus;
  for (int g = 0; g < 3; ++g) gpus.push_back(builder.add_gpu(fmt::format("gpu{}", g)));
  const NodeId hub = builder.add_node("switch0", NodeKind::network_switch);
  for (const NodeId gpu : gpus) builder.add_cable(gpu, hub, {.bandwidth = 1_GBps, .latency = 1us});
  const Topology net = builder.build();
  // Two flows share a link of 2 bytes per picosecond: each moves one in a picosecond. Times are rounded up from a
  // thousandth of one on.
  const auto starts = [&](std::int64_t capacity, std::int64_t bytes, bool any_order) {
    const Topology rated = net.with_links([&](Link& link) { link.bandwidth = {capacity}; });
    Engine<Event> engine;
    const std::unique_ptr<Network> network =
        make_network(NetworkModel::fair, {}, rated, engine, {.any_order = any_order});
    Routes routes(rated);
    for (const int from : {0, 1})
      network->add_leg(routes.find(gpus[static_cast<std::size_t>(from)], gpus[2]).legs[0], true, true);
    network->start(0, {bytes}, 0);
    network->start(1, {bytes}, 1);
    network->settle();
  };
  CHECK_NOTHROW(starts(2'000'000'000'000, 1000, true));
  // 2 * 500'001 / 1'000'000 ps is a picosecond and two millionths, 2 * 500'500 / 1'000'000 one and a thousandth.
  CHECK_NOTHROW(starts(1'000'000'000'000'000'000, 500'001, true));
  CHECK_THROWS_AS(starts(1'000'000'000'000'000'000, 500'500, true), Unsure);
  CHECK_NOTHROW(starts(1'000'000'000'000'000'000, 500'500, false));
}

}  // namespace fold_turns_test
