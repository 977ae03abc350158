// Several messages of one connection at a time, over relays: they keep their order and share the connection's rooms.
#include "sim/run/staged_transfers.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "sim/run/run.hpp"
#include "sim/schedule/collective.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/tiny.hpp"
#include "tests/support/written_schedule.hpp"

namespace staged_transfers_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

/// gpu0 - gpu1 - ... with a cable between neighbors: a message from the first to the last has a leg for each cable.
Topology chain(const std::vector<LinkSpec>& cables) {
  TopologyBuilder builder;
  for (std::size_t g = 0; g <= cables.size(); ++g) builder.add_gpu(fmt::format("gpu{}", g));
  for (std::uint32_t c = 0; c < cables.size(); ++c) builder.add_cable(NodeId{c}, NodeId{c + 1}, cables[c]);
  return builder.build();
}

struct Sent {
  Bytes size;
  std::uint16_t channel = 0;
};

/// Messages from rank 0 to rank 1, all in one step, or one after the other.
Schedule messages(const std::vector<Sent>& sent, bool in_turn = false) {
  std::vector<Bytes> sizes;
  for (const Sent& each : sent) sizes.push_back(each.size);
  WrittenSchedule t = of_moves(2, sizes, std::vector<Move>(sent.size(), {0, 1}));
  for (std::uint32_t m = 0; m < sent.size(); ++m) {
    const bool new_step = m == 0 || in_turn;
    Step& sends = new_step ? t.step(0) : t.steps[0][0].back();
    Step& receives = new_step ? t.step(1) : t.steps[1][0].back();
    sends.send(1, {Buffer::input, m, 1});
    receives.receive(0, {Buffer::output, m, 1});
    sends.ops.back().channel = receives.ops.back().channel = sent[m].channel;
  }
  return t.schedule();
}

RunOptions in_pieces(const Topology& net, Bytes size, int depth) {
  RunOptions options{.placement = {NodeId{0}, NodeId{static_cast<std::uint32_t>(net.n_nodes() - 1)}},
                     .record_spans = true};
  options.plans.front().transport.staging = {.size = size, .depth = depth};
  return options;
}

struct Arrival {
  Bytes size;
  SimTime when;
  bool operator==(const Arrival&) const = default;
};

/// In the order of arrival.
std::vector<Arrival> arrivals(const Timeline& line) {
  std::vector<Arrival> found;
  for (const Span& span : line.spans) found.push_back({span.bytes, span.finish});
  return found;
}

/// The times found by following every piece: one leaves a leg at a time, in order, when it is there and the piece
/// `depth` before it has left the next leg.
std::vector<Arrival> arrivals_piece_by_piece(const std::vector<LinkSpec>& legs, const std::vector<Sent>& sent,
                                             Bytes size, int depth) {
  std::vector<std::vector<SimTime>> left(legs.size());  // [leg][piece]
  std::vector<Arrival> found;
  for (const Sent& each : sent) {
    SimTime ready;
    for (std::int64_t done = 0; done == 0 || done < each.size.count; done += size.count) {
      ready = {};
      for (std::size_t l = 0; l < legs.size(); ++l) {
        const std::size_t piece = left[l].size();
        SimTime begins = ready;
        if (piece > 0) begins = std::max(begins, left[l][piece - 1]);
        const auto rooms = static_cast<std::size_t>(depth);
        if (l + 1 < legs.size() && piece >= rooms) begins = std::max(begins, left[l + 1][piece - rooms]);
        left[l].push_back(begins + transfer_time({std::min(size.count, each.size.count - done)}, legs[l].bandwidth));
        ready = left[l].back() + legs[l].latency;
      }
    }
    found.push_back({each.size, ready});
  }
  return found;
}

}  // namespace

TEST_CASE("a message waits for the one before it on its connection, and the wait is due to the link") {
  // Pieces of 1 us over two legs. The first message's four leave gpu1 at 2, 3, 4, 5 us, the second's at 6 to 9.
  const Topology net = chain({{.bandwidth = 1_GBps}, {.bandwidth = 1_GBps}});
  const std::vector<Sent> two = {{4000_B}, {4000_B}};
  const Timeline line = run(net, check(messages(two)), in_pieces(net, 1000_B, 8));
  CHECK(arrivals(line) == std::vector<Arrival>{{4000_B, SimTime{5us}}, {4000_B, SimTime{9us}}});
  // On the critical path is the second one: the first leg is busy for 8 us, of which 4 are the first message's. The
  // rest is its last piece on the second leg.
  REQUIRE(line.bottleneck);
  CHECK(line.bottleneck->busy == 8us);
  CHECK(line.bottleneck->latency == 1us);
  // In turn each takes 5 us, of which its own four pieces are 4.
  const Timeline in_turn = run(net, check(messages(two, true)), in_pieces(net, 1000_B, 8));
  CHECK(in_turn.duration() == 10us);
  CHECK(in_turn.bottleneck->busy == 8us);
  CHECK(in_turn.bottleneck->latency == 2us);
}

TEST_CASE("the rooms between two legs are the connection's, however many messages are under way") {
  // One room: a piece of 1 us goes in, then out. Two messages of four pieces take what one of eight does.
  const Topology net = chain({{.bandwidth = 1_GBps}, {.bandwidth = 1_GBps}});
  const RunOptions one_room = in_pieces(net, 1000_B, 1);
  CHECK(run(net, check(messages({{8000_B}})), one_room).duration() == 16us);
  CHECK(run(net, check(messages({{4000_B}, {4000_B}})), one_room).duration() == 16us);
}

TEST_CASE("channels have rooms and an order of their own") {
  // Behind four pieces on the same connection the small message is through at 6 us; on another channel it shares the
  // first leg until 2 us and the second one, with the first piece of the large message, until 4 us.
  const Topology net = chain({{.bandwidth = 1_GBps}, {.bandwidth = 1_GBps}});
  const RunOptions options = in_pieces(net, 1000_B, 8);
  const auto small = [&](std::uint16_t channel) {
    for (const Arrival& each : arrivals(run(net, check(messages({{4000_B}, {1000_B, channel}})), options)))
      if (each.size == 1000_B) return each.when;
    return SimTime::max();
  };
  CHECK(small(0) == SimTime{6us});
  CHECK(small(1) == SimTime{4us});
}

TEST_CASE("of one connection no message overtakes another, whatever the protocol") {
  const Topology net = chain({{.bandwidth = 1_GBps, .latency = 1us}, {.bandwidth = 1_GBps, .latency = 1us}});
  for (const char* protocol : {"none", "ll", "ll128", "simple"}) {
    CAPTURE(protocol);
    RunOptions options = in_pieces(net, 1000_B, 2);
    options.plans.front().protocol = find_protocol(protocol);
    const std::vector<Arrival> there =
        arrivals(run(net, check(messages({{40000_B}, {100_B}, {20000_B}, {0_B}})), options));
    REQUIRE(there.size() == 4);
    const std::vector<double> share = {40000, 100, 20000, 0};  // a protocol adds to what is sent
    for (std::size_t m = 0; m < 4; ++m)
      CHECK(static_cast<double>(there[m].size.count) / static_cast<double>(there[0].size.count) ==
            doctest::Approx(share[m] / share[0]).epsilon(0.05));
  }
}

TEST_CASE("random messages of one connection arrive when following every piece says") {
  test::Draw draw(16);
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    std::vector<LinkSpec> cables;
    for (std::int64_t l = draw.number(2, 4); l > 0; --l)
      cables.push_back({.bandwidth = Bandwidth{draw.number(1, 4) * 1'000'000'000},
                        .latency = Picoseconds{draw.number(0, 3) * 500'000}});
    std::vector<Sent> sent;
    for (std::int64_t m = draw.number(1, 6); m > 0; --m)
      sent.push_back({{draw.once_in(6) ? 0 : draw.number(1, 12000)}});
    const Bytes size{draw.number(300, 3000)};
    const auto depth = static_cast<int>(draw.number(1, 4));
    const Topology net = chain(cables);
    const Timeline line = run(net, check(messages(sent)), in_pieces(net, size, depth));
    REQUIRE(arrivals(line) == arrivals_piece_by_piece(cables, sent, size, depth));
  }
}

TEST_CASE("two messages that lose a link of their way fare as one of the size of both") {
  // As in disturbance_links_test: of 10 MB in pieces of 1 MB, 100 us each, three have left gpu1 at 450 us, when its
  // way on goes down; 7 MB start again by gpu2, with 5 us per link, and are there at 450 + 105 + 700 + 5 us.
  TopologyBuilder builder;
  for (int g = 0; g < 4; ++g) builder.add_gpu(fmt::format("gpu{}", g));
  for (const std::uint32_t end : {0U, 3U}) {
    builder.add_cable(NodeId{end}, NodeId{1}, {.bandwidth = 10_GBps});
    builder.add_cable(NodeId{end}, NodeId{2}, {.bandwidth = 10_GBps, .latency = 5us});
  }
  const Topology net = builder.build();
  for (const std::vector<Sent>& sent : {std::vector<Sent>{{10'000'000_B}},
                                        {{5'000'000_B}, {5'000'000_B}},
                                        {{2'000'000_B}, {2'000'000_B}, {6'000'000_B}}}) {
    RunOptions options = in_pieces(net, 1'000'000_B, 8);
    options.disturbance.links = {
        {.to = LinkChange::To::down, .at = SimTime{450us}, .links = {link_between(net, "gpu1", "gpu3")}}};
    const Timeline line = run(net, check(messages(sent)), options);
    CHECK(line.duration() == 1260us);
    CHECK(line.link_bytes[link_between(net, "gpu0", "gpu1").value] == 4'500'000_B);
    CHECK(line.link_bytes[link_between(net, "gpu1", "gpu3").value] == 3'500'000_B);
    CHECK(line.link_bytes[link_between(net, "gpu2", "gpu3").value] == 7'000'000_B);
    const std::vector<Arrival> there = arrivals(line);
    REQUIRE(there.size() == sent.size());
    for (std::size_t m = 0; m < sent.size(); ++m) CHECK(there[m].size == sent[m].size);
  }
}

TEST_CASE("what is sent again leaves the messages ahead of it on the old way") {
  // gpu0 - gpu1 - gpu2 - gpu5, of which the last cable is slow, and a longer way by gpu3 and gpu4; one room. The first
  // message's second piece leaves gpu0 at 300 us and waits at gpu1 until 1200 us, as gpu2 has no room; so nothing of
  // the second message has left when gpu0 - gpu1 goes down at 450 us. It goes by gpu3.
  const std::vector<LinkSpec> near = {{.bandwidth = 10_GBps}, {.bandwidth = 10_GBps}, {.bandwidth = 1_GBps}};
  const LinkSpec far{.bandwidth = 10_GBps, .latency = 5us};
  TopologyBuilder builder;
  for (int g = 0; g < 6; ++g) builder.add_gpu(fmt::format("gpu{}", g));
  builder.add_cable(NodeId{0}, NodeId{1}, near[0]);
  builder.add_cable(NodeId{1}, NodeId{2}, near[1]);
  builder.add_cable(NodeId{2}, NodeId{5}, near[2]);
  builder.add_cable(NodeId{0}, NodeId{3}, far);
  builder.add_cable(NodeId{3}, NodeId{4}, far);
  builder.add_cable(NodeId{4}, NodeId{5}, far);
  const Topology net = builder.build();
  const Sent first{2'000'000_B}, second{12'000'000_B};
  RunOptions options = in_pieces(net, 1'000'000_B, 1);
  options.disturbance.links = {
      {.to = LinkChange::To::down, .at = SimTime{450us}, .links = {link_between(net, "gpu0", "gpu1")}}};
  const Timeline line = run(net, check(messages({first, second})), options);
  std::vector<Arrival> expected = arrivals_piece_by_piece(near, {first}, 1'000'000_B, 1);
  expected.push_back(arrivals_piece_by_piece({far, far, far}, {second}, 1'000'000_B, 1)[0]);
  expected[1].when += 450us;
  CHECK(arrivals(line) == expected);
  CHECK(line.link_bytes[link_between(net, "gpu0", "gpu1").value] == 2'000'000_B);
  CHECK(line.link_bytes[link_between(net, "gpu1", "gpu2").value] == 2'000'000_B);
}

}  // namespace staged_transfers_test
