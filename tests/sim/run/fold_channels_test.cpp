// One channel for all: where channels do the same, a folded run reports what the whole run reports, and where they
// might not, it is not folded.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/catalog.hpp"
#include "algorithms/composed/channels.hpp"
#include "algorithms/exchanges/recursive_doubling.hpp"
#include "sim/base/error.hpp"
#include "sim/network/network.hpp"
#include "sim/run/run.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/timeline_text.hpp"
#include "tests/support/tiny.hpp"
#include "topologies/catalog.hpp"

namespace fold_channels_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;
using ringsim::test::Draw;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
bool is_one_channel(const std::string& said) { return has(said, " channels represents all: "); }

/// Why one channel does not stand for all, without numbers.
std::string reason_in(const std::string& said) {
  const std::string start = "one channel does not represent all channels either: ";
  const std::size_t found = said.find(start);
  if (found == std::string::npos) return "by rank";
  std::string text = said.substr(found + start.size());
  std::erase_if(text, [](char c) { return c >= '0' && c <= '9'; });
  return text;
}

/// As report_of() has it, but for events, of which the whole run has some that are overtaken, and for which of several
/// like links is named.
std::string report_but_events(const Topology& net, Timeline timeline) {
  timeline.events = 0;
  const std::string text = report_of(net, timeline);
  return text.substr(0, text.rfind(" with "));
}

/// Runs it both ways. Returns the report's sentence on how it was folded, or why it was not.
std::string both_ways(const Topology& net, const CheckedSchedule& schedule, RunOptions options) {
  options.fold_from = 0;
  // It keeps ranks from standing for others to rounding (fold_alike_test.cpp), and stops no exact fold.
  options.on_compute = [](const ComputeEvent&) {};
  const Timeline one = run(net, schedule, options);
  options.fold = false;
  const Timeline all = run(net, schedule, options);
  CHECK_FALSE(all.folded);
  REQUIRE(report_but_events(net, one) == report_but_events(net, all));
  CHECK(one.folded.has_value() == one.not_folded.empty());
  return one.folded.value_or(one.not_folded);
}

/// A star, leaves of two hosts under two spines that are narrower than their ports, or machines of several GPUs.
Topology random_topology(Draw& draw) {
  const auto link = [&] {
    return LinkSpec{.bandwidth = {draw.number(1, 20) * 1'000'000'000}, .latency = draw.number(0, 4) * 500ns};
  };
  const int n = static_cast<int>(draw.number(2, 9));
  if (draw.once_in(3)) return star(n, link());
  if (draw.once_in(2)) {
    const char* machine = draw.one_of(std::array{"dgx-1v", "dgx-a100", "hgx-h100"});
    const int nodes = static_cast<int>(draw.number(1, 2));
    return build(cluster_of(machine, nodes, StarFabric{.link = link()}));
  }
  TopologyBuilder builder;
  for (int g = 0; g < n; ++g) builder.add_gpu(fmt::format("gpu{}", g));
  const LinkSpec port = link(), trunk = link();
  const NodeId core = builder.add_node("core", NodeKind::network_switch);
  for (int g = 0; g < n; g += 3) {
    const NodeId leaf = builder.add_node(fmt::format("leaf{}", g / 3), NodeKind::network_switch);
    for (int each = g; each < std::min(n, g + 3); ++each)
      builder.add_cable(NodeId{static_cast<std::uint32_t>(each)}, leaf, port);
    builder.add_cable(leaf, core, trunk);
  }
  return builder.build();
}

struct Drawn {
  Topology net;
  Schedule schedule;
  RunOptions options;
};

constexpr std::array algorithms{"halving_doubling",
                                "recursive_doubling",
                                "double_binary_tree",
                                "binomial_tree",
                                "parameter_server",
                                "direct",
                                "chain",
                                "ring",
                                "pairwise",
                                "kary_tree",
                                "bruck",
                                "pat"};

Drawn draw_run(std::uint64_t seed) {
  Draw draw(seed);
  Topology net = random_topology(draw);
  RunOptions options;
  options.plans.front().protocol = find_protocol(draw.one_of(std::array{"none", "none", "simple", "ll", "ll128"}));
  options.model = draw.one_of(std::array{NetworkModel::fair, NetworkModel::ideal});
  if (draw.once_in(2))
    options.plans.front().transport.staging = {.size = {draw.number(16, 512) * 1024},
                                               .depth = static_cast<int>(draw.number(1, 4))};
  if (draw.once_in(2)) options.plans.front().transport.gdr_level = PathType::loc;
  if (draw.once_in(8)) options.plans.front().transport.nics = Transport::Nics::all;
  const auto ranks = static_cast<int>(draw.number(2, static_cast<std::int64_t>(net.ranks().size())));
  std::vector<NodeId> places(net.ranks().begin(), net.ranks().end());
  if (draw.once_in(2)) draw.shuffle(places);
  places.resize(static_cast<std::size_t>(ranks));
  options.placement = places;
  for (;;) {
    const Algorithm* algorithm = find_algorithm(draw.one_of(algorithms));
    CollectiveRequest request{
        .op = draw.one_of(std::array{CollectiveOp::all_reduce, CollectiveOp::all_reduce, CollectiveOp::all_to_all,
                                     CollectiveOp::all_gather, CollectiveOp::broadcast}),
        .ranks = ranks,
        .bytes = {},
        .channels = static_cast<int>(draw.number(2, 8))};
    if (!algorithm->supports(request.op)) continue;
    if (draw.once_in(3)) request.chunk = Bytes{draw.number(1 << 10, 1 << 20)};
    const std::int64_t pieces = std::int64_t{request.channels} * ranks;
    request.bytes = {draw.once_in(8)   ? draw.number(1, 8 << 20)
                     : draw.once_in(2) ? pieces * draw.number(1, 100'000)
                                       : request.channels * draw.number(0, 1'000'000)};
    // Times of 10^15 ps have rates whose last bits decide on picoseconds. Pieces would be too many.
    if (!net.node(places[0]).host && !request.chunk && draw.once_in(4)) request.bytes = request.bytes * 1'000'000;
    try {
      Schedule schedule = make_schedule(*algorithm, request, {});
      return {std::move(net), std::move(schedule), std::move(options)};
    } catch (const InputError&) {  // the algorithm does not do that
    }
  }
}

#ifdef RINGSIM_SANITIZED  // which makes runs 15 times slower
constexpr std::uint64_t runs = 300;
#else
constexpr std::uint64_t runs = 4000;
#endif

/// Two switches, with a trunk that is narrower than the ports of their two ranks each.
Topology narrow_trunk() {
  return dumbbell({.bandwidth = 10_GBps, .latency = 1us}, {.bandwidth = 1_GBps, .latency = 2us});
}

/// Ranks exchange with the one next to them, then over the trunk: so they do not fold by rank.
CheckedSchedule exchanges(std::int64_t bytes, int channels) {
  return check(over_channels(recursive_doubling_all_reduce(4, {bytes}), {.channels = channels}));
}

}  // namespace

TEST_CASE("random runs over channels report the same to the picosecond, folded and not") {
  std::map<std::string, int> n_folded, n_not;
  for (std::uint64_t seed = 0; seed < runs; ++seed) {
    CAPTURE(seed);
    const Drawn drawn = draw_run(seed);
    CAPTURE(drawn.schedule.algorithm);
    CAPTURE(drawn.options.plans.front().protocol->name);
    CAPTURE(to_string(drawn.options.model));
    std::string said;
    try {
      said = both_ways(drawn.net, check(drawn.schedule), drawn.options);
    } catch (const InputError&) {  // too few helpers, messages larger than the slots that they need
      continue;
    }
    if (!is_one_channel(said)) {
      ++n_not[reason_in(said)];
      continue;
    }
    ++n_folded[drawn.schedule.algorithm.substr(0, drawn.schedule.algorithm.find(' '))];
    ++n_folded[std::string(drawn.options.plans.front().protocol->name)];
    ++n_folded[std::string(to_string(drawn.options.model))];
    if (drawn.options.plans.front().transport.gdr_level == PathType::loc) ++n_folded["staged"];
  }
  constexpr int few = static_cast<int>(runs / 200);  // the rarest of them is one run of 130
  for (const char* algorithm : algorithms) {
    CAPTURE(algorithm);
    CHECK(n_folded[algorithm] >= few);
  }
  for (const char* what : {"none", "simple", "ll", "ll128", "fair", "ideal", "staged"}) {
    CAPTURE(what);
    CHECK(n_folded[what] >= few);
  }
  for (const char* why : {" bytes in  chunks are not equal in all channels", "messages are cut into  parts",
                          "a message can start before it has all of its ll slots",
                          "of equally long critical paths some have their time divided otherwise"}) {
    CAPTURE(why);
    CHECK(n_not[why] > 0);
  }
}

TEST_CASE(
    "four channels take what all of their messages take over links that they share, and nothing more over others") {
  const Topology net = narrow_trunk();
  const CheckedSchedule schedule = exchanges(4000, 4);
  for (const bool fold : {true, false}) {
    RunOptions options{.fold = fold, .fold_from = 0};
    const Timeline fair = run(net, schedule, options);
    CHECK(fair.folded.value_or("") ==
          (fold ? "one of 4 channels represents all: by the construction and proof of recursive_doubling channels=4 "
                  "rounds=1, they do the same, and their messages share links in the same way"
                : ""));
    // Over ports 4 x 1000 B at 10 GB/s and 2 x 1 us; over the trunk 2 x 4 x 1000 B at 1 GB/s and 1 + 2 + 1 us.
    CHECK(fair.duration() == Picoseconds{400ns + 2us + 8us + 4us});
    CHECK(fair.transfers == 2 * 4 * 4);
    CHECK(fair.bytes_sent == Bytes{2 * 4 * 4000});
    CHECK(fair.link_bytes[link_between(net, "s0", "s1").value] == Bytes{2 * 4000});
    CHECK(fair.bottleneck->busy == Picoseconds{8us});
    CHECK(fair.bottleneck->latency == Picoseconds{6us});

    // The trunk gives each message 1 GB/s: less than its share of a port, 10 GB/s over 4.
    options.model = NetworkModel::ideal;
    CHECK(run(net, schedule, options).duration() == Picoseconds{400ns + 2us + 1us + 4us});
  }
}

TEST_CASE("what the argument does not cover is simulated in full, and says why") {
  const Topology net = narrow_trunk();
  const auto said = [&](auto change) {
    RunOptions options;
    change(options);
    return both_ways(net, exchanges(4 << 16, 4), options);
  };
  CHECK(is_one_channel(said([](RunOptions&) {})));
  const auto refusal = [&](auto change) { return reason_in(said(change)); };
  CHECK(refusal([](RunOptions& options) { options.model = NetworkModel::packet; }) == "the network model is packet");
  for (const Routing::Policy policy :
       {Routing::Policy::ecmp, Routing::Policy::flow_spray, Routing::Policy::packet_spray})
    CHECK(refusal([&](RunOptions& options) { options.routing.policy = policy; }) ==
          "the path of a message may depend on its channel");
  CHECK(refusal([](RunOptions& options) { options.plans.front().transport.nics = Transport::Nics::per_channel; }) ==
        "the path of a message may depend on its channel");
  CHECK(refusal([](RunOptions& options) { options.record_path = true; }) == "the critical path is being recorded");
  CHECK(refusal([](RunOptions& options) { options.record_spans = true; }) == "every message is being recorded");
  CHECK(refusal([](RunOptions& options) { options.on_message = [](const Span&) {}; }) ==
        "every message is being recorded");
  CHECK(refusal([](RunOptions& options) { options.on_traffic = [](const Traffic&) {}; }) ==
        "every message is being recorded");
  CHECK(said([](RunOptions& options) { options.jobs.assign(4, 0); }) == "several jobs share the run");
  // 65536 B per channel are two slots of 8 x 64 KiB on the wire.
  CHECK(is_one_channel(said([](RunOptions& options) { options.plans.front().protocol = find_protocol("ll"); })));
}

TEST_CASE("channels that are not alike are simulated in full") {
  const Topology net = narrow_trunk();
  CHECK(is_one_channel(both_ways(net, exchanges(4000, 4), {})));
  CHECK(has(both_ways(net, exchanges(4001, 4), {}), "4001 bytes in 4 chunks are not equal in all channels"));
  CHECK(has(both_ways(net, exchanges(4003, 4), {}), "4003 bytes in 4 chunks are not equal in all channels"));
  // Rounded up to 16 bytes on the wire 1000 and 1001 are equal, 1008 and 1009 are not.
  Protocol protocol = *find_protocol("simple");
  protocol.align = 16_B;
  const RunOptions simple{.plans = {{.protocol = &protocol}}};
  CHECK(is_one_channel(both_ways(net, exchanges(4001, 4), simple)));
  CHECK(has(both_ways(net, exchanges(4033, 4), simple), "4033 bytes in 4 chunks are not equal in all channels"));

  const auto in_orders = [&](const std::vector<std::vector<Actor>>& orders) {
    return both_ways(net, check(over_channels(recursive_doubling_all_reduce(4, 4000_B), {.channels = 2}, orders)), {});
  };
  CHECK(is_one_channel(in_orders({{2, 0, 3, 1}})));
  CHECK(has(in_orders({{2, 0, 3, 1}, {2, 0, 1, 3}}), "ranks have different positions in different channels"));

  // One channel has no other that it could stand for.
  CHECK(reason_in(both_ways(net, exchanges(4000, 1), {})) == "by rank");
}

TEST_CASE("messages of 4000 bytes that may start with some of their slots before they have all are simulated in full") {
  const Topology net = narrow_trunk();
  Protocol protocol = *find_protocol("simple");
  const auto said = [&](Bytes slot) {
    protocol.slot = slot;
    return both_ways(net, exchanges(16'000, 4), {.plans = {{.protocol = &protocol}}});
  };
  CHECK(is_one_channel(said(4000_B)));
  CHECK(is_one_channel(said(1000_B)));  // 4 of 8 slots
  const std::string some = "a message can start before it has all of its simple slots";
  CHECK(has(said(1500_B), some));  // 3 of 8
  CHECK(has(said(400_B), some));   // 10
}

TEST_CASE("a piece that stands for several leaves when they do, and links carry all of them") {
  const Topology net = star(3, {.bandwidth = 1_GBps, .latency = 1us});
  const auto carried = [&](int copies, int pieces) {
    Engine<Event> engine;
    const std::unique_ptr<Network> network = make_network(NetworkModel::fair, {}, net, engine, {.copies = copies});
    Routes routes(net);
    const auto at = [&](const char* name) { return *net.find(name); };
    network->add_leg(routes.find(at("gpu0"), at("gpu2")).legs[0], true, true);
    network->add_leg(routes.find(at("gpu1"), at("gpu2")).legs[0], true, true);
    for (int piece = 0; piece < pieces; ++piece)
      for (const std::uint32_t leg : {0U, 1U})
        network->start(leg, {leg == 0 ? 1000 : 2000}, static_cast<std::uint64_t>(2 * piece) + leg);
    SimTime last{};
    engine.run(
        [&](const Event& event) {
          if (network->due(event)) last = engine.now();
        },
        [&] { network->settle(); }, [] { return true; });
    const Carried in = network->carried(net.link(link_between(net, "switch0", "gpu2")).resource);
    CHECK(in.pieces == 6);
    CHECK(in.bytes == 9000);
    CHECK(in.busy == Picoseconds{9us});  // 3 x (1000 + 2000) B at 1 GB/s
    return last;
  };
  CHECK(carried(3, 1) == carried(1, 3));
}

// A leg's bytes cross its links one and a half times, so sums of shares are rounded: by more, the more there are.
TEST_CASE("with copies the last bits of a rate are as doubtful as those of so many flows") {
  const Topology net = star(2, {.bandwidth = {1'000'000'000'000'000'000}, .latency = 1us});
  const auto starts = [&](std::int64_t bytes, int copies) {
    Engine<Event> engine;
    const std::unique_ptr<Network> network =
        make_network(NetworkModel::fair, {}, net, engine, {.any_order = true, .copies = copies});
    Leg leg = Routes(net).find(*net.find("gpu0"), *net.find("gpu1")).legs[0];
    leg.shares.assign(leg.links.size(), 1.5);
    network->add_leg(leg, true, true);
    network->start(0, {bytes}, 0);
    network->settle();
  };
  // With 1000 copies a byte takes 0.0015 ps. Times are rounded up from a thousandth of a picosecond on; 10^6 of them
  // are doubtful by 2 x 4 x 1001^2 x 2^-53 x 10^6 = 0.0009.
  CHECK_THROWS_AS(starts(666'666'667, 1000), Unsure);  // 1'000'000.0005 ps
  CHECK_NOTHROW(starts(666'666'800, 1000));            // 1'000'000.2
  CHECK_NOTHROW(starts(666'666'667'000 / 2, 2));       // as long, by two copies
}

}  // namespace fold_channels_test
