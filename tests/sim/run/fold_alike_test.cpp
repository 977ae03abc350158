// In exchanges some ranks stand for others that do the same: their run tells what the whole run tells.
#include "sim/run/fold_alike.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/catalog.hpp"
#include "sim/run/phase_account.hpp"
#include "sim/run/run.hpp"
#include "tests/support/draw.hpp"
#include "topologies/catalog.hpp"

namespace fold_alike_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;
using ringsim::test::Draw;

namespace {

const LinkSpec cable{.bandwidth = {25'000'000'000}, .latency = 1us};

CheckedSchedule exchange_of(const std::string& algorithm, int ranks, Bytes bytes) {
  const CollectiveRequest request{.op = CollectiveOp::all_to_all, .ranks = ranks, .bytes = bytes};
  return check(make_schedule(*find_algorithm(algorithm), request, {}));
}

Topology cluster(const std::string& node, int nodes) {
  return build(cluster_of(node, nodes, StarFabric{.link = cable}));
}

/// The runs of some ranks for all, and of all.
struct Both {
  Timeline some, all;
};

Both both(const Topology& net, const CheckedSchedule& schedule, RunOptions options = {}) {
  options.fold_from = 0;
  Both runs{.some = run(net, schedule, options), .all = {}};
  options.fold = false;
  runs.all = run(net, schedule, options);
  return runs;
}

/// Checks the figures that must be equal. Returns the largest difference between the ends of a rank in both runs.
Picoseconds farthest(const Both& runs) {
  CHECK(runs.some.transfers == runs.all.transfers);
  CHECK(runs.some.bytes_sent == runs.all.bytes_sent);
  CHECK(runs.some.link_bytes == runs.all.link_bytes);
  CHECK(runs.some.has_choice == runs.all.has_choice);
  CHECK(runs.some.events < runs.all.events);
  CHECK_FALSE(runs.some.fingerprint);
  Picoseconds most{0};
  for (std::size_t rank = 0; rank < runs.all.actor_finish.size(); ++rank) {
    const Picoseconds apart{runs.some.actor_finish[rank] - runs.all.actor_finish[rank]};
    most = std::max({most, apart, -apart});
  }
  return most;
}

/// Moments of a run round by 2 ps each, and shares change at most once for each message of a rank.
Picoseconds rounding(const CheckedSchedule& schedule) { return Picoseconds{2} * schedule.schedule().actors; }

}  // namespace

TEST_CASE("in an all-to-all the GPUs of the first node stand for those of all nodes") {
  const Topology net = cluster("hgx-h100", 4);
  for (const char* algorithm : {"direct", "pairwise"}) {
    CAPTURE(algorithm);
    const CheckedSchedule schedule = exchange_of(algorithm, 32, 100'000'001_B);
    const Both runs = both(net, schedule);
    REQUIRE(runs.some.folded);
    CHECK(*runs.some.folded == "8 of 32 ranks represent all: the others do the same over equally loaded links");
    CHECK(farthest(runs) <= rounding(schedule));
  }
}

TEST_CASE("some ranks that stand for all take as long as all, to rounding, on random clusters") {
  Draw draw(47);
  int folded = 0;
  for (int i = 0; i < 60; ++i) {
    const LinkSpec link{.bandwidth = {draw.number(2, 40) * 1'000'000'000},
                        .latency = Picoseconds{draw.number(0, 2'000'000)}};
    const auto nodes = static_cast<int>(draw.number(2, 4));
    const std::string node = draw.one_of(std::array{"dgx-a100", "dgx-1v", "hgx-h100"});
    const std::int64_t kind = draw.number(0, 2);
    const Topology net = kind == 0
                             ? build(cluster_of(node, nodes, LeafSpine{.nodes_per_leaf = 2, .spines = 2, .link = link}))
                         : kind == 1 ? build(cluster_of(node, nodes, TorusFabric{.dimensions = {nodes}, .link = link}))
                                     : build(cluster_of(node, nodes, StarFabric{.link = link}));
    const CheckedSchedule schedule =
        exchange_of(draw.one_of(std::array{"direct", "pairwise"}), 8 * nodes, Bytes{draw.number(1, 50'000'000)});
    RunOptions options;
    if (draw.number(0, 1) == 1) options.routing.policy = Routing::Policy::ecmp;
    const Both runs = both(net, schedule, options);
    if (!runs.some.folded) {
      CHECK(runs.some.not_folded.find("ranks") != std::string::npos);
      CHECK(runs.some.finish == runs.all.finish);
      continue;
    }
    ++folded;
    CAPTURE(i);
    CHECK(farthest(runs) <= rounding(schedule));
  }
  CHECK(folded >= 30);  // ECMP draws ways by pair, so that few nodes are alike
}

TEST_CASE("ranks whose first lane is empty are read like others") {
  Schedule later = exchange_of("direct", 16, 16'000'000_B).schedule();
  ++later.lanes;
  later.n_steps = [all = later.n_steps](Actor actor, Lane lane) { return lane == 0 ? 0 : all(actor, lane - 1); };
  later.step = [all = later.step](Actor actor, Lane lane, int i, Step& out) { all(actor, lane - 1, i, out); };
  const CheckedSchedule schedule = check(std::move(later));
  const Both runs = both(cluster("hgx-h100", 2), schedule);
  REQUIRE(runs.some.folded);
  CHECK(farthest(runs) <= rounding(schedule));
}

TEST_CASE("a rank whose port is slower is not stood for") {
  TopologyBuilder builder;
  for (int g = 0; g < 8; ++g) builder.add_gpu(fmt::format("gpu{}", g));
  const NodeId hub = builder.add_node("switch", NodeKind::network_switch);
  for (std::uint32_t g = 0; g < 8; ++g)
    builder.add_cable(NodeId{g}, hub, {.bandwidth = {(g == 3 ? 20 : 25) * 1'000'000'000LL}, .latency = 1us});
  const Both runs = both(builder.build(), exchange_of("direct", 8, 8'000'000_B));
  CHECK_FALSE(runs.some.folded);
  CHECK(runs.some.not_folded.find("too few ranks do the same over equally loaded links") != std::string::npos);
  CHECK(runs.some.finish == runs.all.finish);
}

TEST_CASE("ranks are looked at that stand for others if much is under way at once, and in exchanges alone") {
  // 104 ranks have 10,712 messages, 103 of each rank at once: 103 x 10,712 is more than 2^20; of 96 ranks 95 x 9,120
  // is less.
  CHECK(may_pay_to_fold_alike(exchange_of("direct", 104, 1_MiB), {}));
  CHECK_FALSE(may_pay_to_fold_alike(exchange_of("direct", 96, 1_MiB), {}));
  CHECK_FALSE(may_pay_to_fold_alike(exchange_of("pairwise", 104, 1_MiB), {}));
  CHECK(may_pay_to_fold_alike(exchange_of("pairwise", 104, 1_MiB), {.fold_from = 10'712}));
  const CollectiveRequest ring{.op = CollectiveOp::all_reduce, .ranks = 8, .bytes = 1_MiB};
  CHECK_FALSE(may_pay_to_fold_alike(check(make_schedule(*find_algorithm("ring"), ring, {})), {.fold_from = 0}));
}

TEST_CASE("messages that are each to be told of are all simulated") {
  const Topology net = cluster("hgx-h100", 2);
  const CheckedSchedule schedule = exchange_of("direct", 16, 16'000'000_B);
  const auto is_folded = [&](RunOptions options) {
    options.fold_from = 0;
    return run(net, schedule, options).folded.has_value();
  };
  CHECK(is_folded({}));
  CHECK_FALSE(is_folded({.record_spans = true}));
  CHECK_FALSE(is_folded({.on_message = [](const Span&) {}}));
  CHECK(is_folded({.on_message = [](const Span&) {}, .messages_may_fold = true}));
  CHECK_FALSE(is_folded({.on_traffic = [](const Traffic&) {}}));
  CHECK_FALSE(is_folded({.on_compute = [](const ComputeEvent&) {}}));
  CHECK_FALSE(is_folded({.model = NetworkModel::packet}));
}

TEST_CASE("ranks that stand for others tell the phases and the path of all") {
  const Topology net = cluster("hgx-h100", 2);
  const CheckedSchedule schedule = exchange_of("direct", 16, 16'000'000_B);
  std::vector<PhaseUse> uses;
  std::vector<Picoseconds> lengths;
  for (const bool folds : {true, false}) {
    PhaseAccount account(schedule.schedule());
    RunOptions options{.record_path = true, .fold = folds, .fold_from = 0};
    options.on_message = [&](const Span& message) { account.on_message(message); };
    options.messages_may_fold = true;
    const Timeline timeline = run(net, schedule, options);
    CHECK(timeline.folded.has_value() == folds);
    Picoseconds length{0};
    for (const PathElement& element : timeline.path) length += element.time();
    CHECK(length == timeline.duration());
    lengths.push_back(length);
    const std::vector<PhaseTime> phases = account.finish(timeline);
    REQUIRE(phases.size() == 1);
    uses.push_back(phases.front().whole);
  }
  CHECK(uses[0].messages == 16 * 15);
  CHECK(uses[0].messages == uses[1].messages);
  CHECK(uses[0].bytes == uses[1].bytes);
  CHECK(std::chrono::abs(lengths[0] - lengths[1]) <= rounding(schedule));
}

}  // namespace fold_alike_test
