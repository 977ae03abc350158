// NCCL's protocols: what runs ahead, when a send is done, what goes over the wire. Worked out by hand.
#include "sim/run/protocol.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "algorithms/trees/kary_tree.hpp"
#include "scenarios/predict/predict.hpp"
#include "sim/base/error.hpp"
#include "sim/schedule/collective.hpp"
#include "tests/support/every_algorithm.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/sketch.hpp"
#include "tests/support/tiny.hpp"
#include "tests/support/written_schedule.hpp"

namespace protocol_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

constexpr const char* nccl[] = {"ll", "ll128", "simple"};

Timeline run_with(const std::string& protocol, const Topology& topology, const Schedule& schedule,
                  NetworkModel model = NetworkModel::fair) {
  return run(topology, check(schedule),
             {.model = model, .plans = {{.protocol = find_protocol(protocol)}}, .record_spans = true});
}

/// g0 - g1 - g2 - g3 - g0: cables of 10 GB/s, in turn of 1 us and of 14 us.
Topology two_nodes_of_two() {
  TopologyBuilder builder;
  for (int g = 0; g < 4; ++g) builder.add_gpu("g" + std::to_string(g));
  for (std::uint32_t g = 0; g < 4; ++g)
    builder.add_cable(NodeId{g}, NodeId{(g + 1) % 4}, {.bandwidth = 10_GBps, .latency = g % 2 == 0 ? 1us : 14us});
  return builder.build();
}

/// Rank 0 sends `n` messages of `size` to rank 1, a step each; rank 1 computes before it receives the first.
Schedule stream(int n, Bytes size, Picoseconds busy) {
  const auto messages = static_cast<std::size_t>(n);
  WrittenSchedule t = of_moves(2, std::vector<Bytes>(messages, size), std::vector<Move>(messages, {0, 1}));
  t.step(1).compute(busy);
  for (int i = 0; i < n; ++i) {
    t.step(0).send(1, {Buffer::input, static_cast<std::uint32_t>(i), 1});
    t.step(1).receive(0, {Buffer::output, static_cast<std::uint32_t>(i), 1});
  }
  return t.schedule();
}

Topology one_cable() {
  TopologyBuilder builder;
  builder.add_cable(builder.add_gpu("a"), builder.add_gpu("b"), {.bandwidth = 1_GBps, .latency = 3us});
  return builder.build();
}

}  // namespace

TEST_CASE("without slots every step of a ring waits for the longest cable, with slots only messages on it do") {
  const Topology net = two_nodes_of_two();
  const Schedule empty = ring_all_reduce(4, 0_B), full = ring_all_reduce(4, 4'000'000_B);
  CHECK(run_with("none", net, empty).duration() == 6 * 14us);
  // Six hops of a chunk: three over each kind of cable.
  for (const char* protocol : nccl) CHECK(run_with(protocol, net, empty).duration() == 3 * 14us + 3 * 1us);
  // 1 MB over 10 GB/s is 100 us a hop.
  CHECK(run_with("none", net, full).duration() == 6 * (100us + 14us));
  CHECK(run_with("simple", net, full).duration() == 6 * 100us + 3 * 14us + 3 * 1us);
  // Twice the bytes. LL's slots hold but 512 KiB of them, 52 us: nobody is ahead by more.
  CHECK(run_with("ll", net, full).duration() == 6 * 200us + 3 * 14us + 3 * 1us);
  // 1 MB in lines of which 120 of 128 bytes are data: 1,066,667 bytes, 106.6667 us.
  CHECK(run_with("ll128", net, full).duration() == 6 * Picoseconds{106'666'700} + 3 * 14us + 3 * 1us);
}

TEST_CASE("what a message takes beyond its links goes by what its path crosses: NVLink, PCIe, the network") {
  // NCCL's tuner (protocol.cpp): a step over NVLink takes 1.9 us with LL128, of which 0.6 are LL's, 2.5 of 1 over PCIe,
  // 4 of 2.7 over the network. C2C alone counts as NVLink; a path that goes on over PCIe has PCIe's step.
  const Protocol& ll128 = *find_protocol("ll128");
  for (const PathType type : {PathType::nvl, PathType::nvb, PathType::c2c}) CHECK(ll128.latency(type) == 1300ns);
  for (const PathType type : {PathType::pix, PathType::pxb, PathType::p2c, PathType::phb, PathType::sys}) {
    CAPTURE(to_string(type));
    CHECK(ll128.latency(type) == 1500ns);
  }
  for (const PathType type : {PathType::pxn, PathType::net}) CHECK(ll128.latency(type) == 1300ns);
  // Simple: 3.4, 5.7 and 14 us.
  const Protocol& simple = *find_protocol("simple");
  CHECK(simple.latency(PathType::c2c) == 2800ns);
  CHECK(simple.latency(PathType::p2c) == 4700ns);
  CHECK(simple.latency(PathType::pxn) == 11'300ns);
  for (const PathType type : {PathType::loc, PathType::dir}) CHECK(simple.latency(type) == 0ns);
}

TEST_CASE("a message is rounded up to a multiple of what data is cut in, and then to whole lines") {
  for (Protocol protocol : protocols()) {
    for (const std::int64_t align : {1, 2, 16, 512}) {
      protocol.align = {align};
      // LL128 repeats after 120 bytes, so lines and multiples of 512 after 7680; beyond, sums that need 64 bits.
      for (const std::int64_t from : {std::int64_t{0}, std::int64_t{1} << 40})
        for (std::int64_t data = from; data <= from + 2 * 7680; ++data) {
          std::int64_t whole = data;
          while (whole % align != 0) ++whole;
          const std::int64_t on_wire = (whole * protocol.wire + protocol.payload - 1) / protocol.payload;
          if (protocol.on_wire({data}).count == on_wire && protocol.data_of({on_wire}).count == whole) continue;
          FAIL(protocol.name, " in multiples of ", align, ": ", data, " bytes are ", on_wire, " and back ", whole);
        }
    }
  }
}

TEST_CASE("what a message is rounded up by takes its time, and counts as sent") {
  // A ring of three: 100 bytes in chunks of 33, 33 and 34, which are 48 in multiples of 16. Each rank sends four.
  Protocol protocol = *find_protocol("simple");
  const auto ran = [&](std::int64_t align) {
    protocol.align = {align};
    const Topology net = star(3, {.bandwidth = 1_GBps, .latency = 1us});
    return run(net, check(ring_all_reduce(3, 100_B)), {.plans = {{.protocol = &protocol}}});
  };
  CHECK(ran(16).bytes_sent == 3 * 4 * 48_B);
  CHECK(ran(16).duration() == 4 * (2us + 48ns));  // two links
  CHECK(ran(1).bytes_sent == 4 * 100_B);
  CHECK(ran(1).duration() == 4 * 2us + 4 * 34ns);  // the longest goes through all steps
}

TEST_CASE("under slots a pipelined chain passes on a segment as soon as it is there") {
  // SCHEDULES' (K-1)(a + x) + (s-1) x, where rendezvous with delivery gives (K-2+s)(a + x).
  const Topology net = star(5, {.bandwidth = 1_GBps, .latency = 2us});  // a = 4 us
  const Schedule chain = kary_broadcast(5, 60'000_B, 0, 1, 6);          // x = 10 us
  CHECK(run_with("none", net, chain).duration() == (5 - 2 + 6) * (4us + 10us));
  CHECK(run_with("simple", net, chain).duration() == (5 - 1) * (4us + 10us) + (6 - 1) * 10us);
}

TEST_CASE("eight messages run ahead of a receiver that is busy, the ninth waits for it") {
  // A message of 1000 B takes 1 us and 3 us of latency.
  const Timeline t = run_with("simple", one_cable(), stream(12, 1000_B, 100us));
  REQUIRE(t.spans.size() == 12);
  for (int i = 0; i < 8; ++i) {
    CHECK(t.spans[static_cast<std::size_t>(i)].start == SimTime{i * 1us});
    CHECK(t.spans[static_cast<std::size_t>(i)].finish == SimTime{(i + 4) * 1us});
  }
  // From 100 us on all eight are taken at once; the other four follow each other.
  for (int i = 8; i < 12; ++i) CHECK(t.spans[static_cast<std::size_t>(i)].start == SimTime{100us + (i - 8) * 1us});
  CHECK(t.duration() == 100us + 4 * 1us + 3us);
  CHECK(t.actor_finish[0] == SimTime{104us});  // its last send has left, but not arrived
  CHECK(t.actor_finish[1] == SimTime{107us});
}

TEST_CASE("a message larger than all slots fills them, the rest waits for its receiver") {
  // 4 MiB in slots, 4194.304 us at 1 GB/s; 1000 B more.
  const Schedule late = stream(1, 4_MiB + 1000_B, 10ms), early = stream(1, 4_MiB + 1000_B, 1ms);
  const Timeline waits = run_with("simple", one_cable(), late);
  CHECK(waits.spans[0].start == SimTime{});
  CHECK(waits.actor_finish[0] == SimTime{10ms + 1us});
  CHECK(waits.duration() == 10ms + 1us + 3us);
  CHECK(waits.bottleneck->compute == 10ms);  // what it waited for
  CHECK(waits.bottleneck->busy == 1us);
  CHECK(waits.bottleneck->latency == 3us);
  // A receiver that comes before the slots are full holds nothing up.
  const Timeline flows = run_with("simple", one_cable(), early);
  CHECK(flows.duration() == 4194304ns + 1us + 3us);
  CHECK(flows.transfers == 1);
  CHECK(flows.bottleneck->busy == 4194304ns + 1us);
  CHECK(flows.bottleneck->latency == 3us);
  CHECK(flows.bottleneck->compute == 0us);
  // What fits to the byte leaves without it.
  CHECK(run_with("simple", one_cable(), stream(1, 4_MiB, 10ms)).actor_finish[0] == SimTime{4194304ns});
}

TEST_CASE("slots that are given back go to the next message that lacks some, before its own receive") {
  // Messages of 3 slots each: two and two thirds of a third fill them by 4194.304 us. At 10 ms the first is received,
  // and the third gets its last slot, 524.288 us; two more are free, with which the fourth starts. A second later, the
  // receiver takes the second, and the fourth gets its last; so it has left before anybody takes the third.
  Schedule four = stream(4, 3 * 512_KiB, 10ms);
  WrittenSchedule t(four);
  t.steps[1][0].insert(t.steps[1][0].begin() + 2, Step{});
  t.steps[1][0][2].compute(1s);
  const Timeline line = run_with("simple", one_cable(), t.schedule());
  const Picoseconds slot = 524288ns;
  REQUIRE(line.spans.size() == 4);
  CHECK(line.spans[2].start == SimTime{6 * slot});
  CHECK(line.spans[2].finish == SimTime{10ms + slot + 3us});
  CHECK(line.spans[3].start == SimTime{10ms + slot});  // a send of a step of its own
  CHECK(line.spans[3].finish == SimTime{10ms + 1s + slot + 3us});
  CHECK(line.actor_finish[0] == SimTime{10ms + 1s + slot});
}

TEST_CASE("a message over two NICs is done for its sender when the last part of it has left") {
  // Each host: a gpu and two NICs, 10 GB/s and 2 GB/s, on a PCIe switch without latency; 7 us to the other host. Halves
  // of 2 MB: 0.2 ms and 1 ms. Simple takes 11.3 us more.
  Sketch s;
  s.node("s");
  for (const std::uint32_t host : {0U, 1U}) {
    const std::string h = host == 0 ? "" : "'";
    for (const char* name : {"p", "g", "n0", "n1"}) s.node(name + h, host);
    for (const char* name : {"g", "n0", "n1"})
      s.cable(name + h, "p" + h, {.bandwidth = 100_GBps, .kind = LinkKind::pcie});
    s.cable("n0" + h, "s", {.bandwidth = 10_GBps, .latency = 3500ns, .kind = LinkKind::infiniband});
    s.cable("n1" + h, "s", {.bandwidth = 2_GBps, .latency = 3500ns, .kind = LinkKind::infiniband});
  }
  const Topology net = s.builder.build();
  const auto time = [&](Bytes size, Picoseconds busy) {
    return run(net, check(stream(1, size, busy)),
               {.plans = {{.protocol = find_protocol("simple"), .transport = {.nics = Transport::Nics::all}}}});
  };
  CHECK(time(4'000'000_B, 0us).actor_finish[0] == SimTime{1ms});
  CHECK(time(4'000'000_B, 0us).duration() == 1ms + 7us + Picoseconds{11'300'000});
  // 4 MiB run ahead, 4 MB follow at 20 ms, each in halves.
  const Timeline late = time(4_MiB + 4'000'000_B, 20ms);
  CHECK(late.actor_finish[0] == SimTime{20ms + 1ms});
  CHECK(late.duration() == 20ms + 1ms + 7us + Picoseconds{11'300'000});
}

TEST_CASE("a cable that is cut while a message waits for slots is not taken when it goes on") {
  // Two switches join the two, one of 1 us per link, the other of 5 us. The nearer one is lost at 6 ms, when 4 MiB are
  // in slots; the receiver comes at 10 ms.
  TopologyBuilder builder;
  builder.add_gpu("a");
  builder.add_gpu("b");
  for (const Picoseconds latency : {Picoseconds{1us}, Picoseconds{5us}}) {
    const NodeId hub = builder.add_node(latency == 1us ? "near" : "far", NodeKind::network_switch);
    for (const std::uint32_t end : {0U, 1U})
      builder.add_cable(NodeId{end}, hub, {.bandwidth = 1_GBps, .latency = latency});
  }
  const Topology net = builder.build();
  const LinkChange cut{.to = LinkChange::To::down, .at = SimTime{6ms}, .links = {link_between(net, "a", "near")}};
  const Timeline line = run(net, check(stream(1, 4_MiB + 1000_B, 10ms)),
                            {.plans = {{.protocol = find_protocol("simple")}}, .disturbance = {.links = {cut}}});
  CHECK(line.duration() == 10ms + 1us + 2 * 5us);
  CHECK(line.link_bytes[link_between(net, "a", "near").value] == 4_MiB);
  CHECK(line.link_bytes[link_between(net, "a", "far").value] == 1000_B);
}

TEST_CASE(
    "if a cable fails under a message that moves into slots, the rest takes another way and its receive finds all of "
    "it") {
  // 3 MiB are 6 slots, 314.5728 us at 10 GB/s. At 100 us 1 MB has left over the nearer switch; the rest takes the
  // other. All is there long before the receiver comes, at 2 ms.
  TopologyBuilder builder;
  for (const char* name : {"a", "b"}) builder.add_gpu(name);
  for (const char* name : {"near", "far"}) {
    const NodeId hub = builder.add_node(name, NodeKind::network_switch);
    for (const std::uint32_t end : {0U, 1U})
      builder.add_cable(NodeId{end}, hub, {.bandwidth = 10_GBps, .latency = 1us});
  }
  const Topology net = builder.build();
  const LinkChange cut{.to = LinkChange::To::down, .at = SimTime{100us}, .links = {link_between(net, "a", "near")}};
  const Timeline line = run(net, check(stream(1, 3_MiB, 2ms)),
                            {.plans = {{.protocol = find_protocol("simple")}}, .disturbance = {.links = {cut}}});
  CHECK(line.duration() == 2ms);
  CHECK(line.link_bytes[link_between(net, "a", "near").value] == 1'000'000_B);
  CHECK(line.link_bytes[link_between(net, "a", "far").value] == 3_MiB - 1'000'000_B);
  CHECK(line.bottleneck->compute == 2ms);  // what it waited for
}

TEST_CASE("a cable that is lost when a staged message has arrived, but was not received, takes nothing from it") {
  const auto time = [](const std::string& faults) {
    return predict(ScenarioFile::parse(R"({"version": 1, "name": "t",
      "topology": {"kind": "cluster", "node": "dgx-a100", "nodes": 2,
                   "fabric": {"kind": "star", "link": {"bandwidth": "200 Gb/s", "latency": "1 us"}}},
      "collective": {"op": "broadcast", "algorithm": "chain", "bytes": "1 MiB"},
      "transport": {"protocol": "simple", "gpudirect": false},
      "disturbance": {"late": [{"rank": 8, "by": "1 ms"}]}, "faults": [)" +
                                           faults + "]}",
                                       "s.json")
                       .point(0))
        .time;
  };
  // The only message between the nodes has arrived long before 500 us.
  CHECK(time(R"({"link": "node0.nic3", "state": "down", "at": "500 us"})") == time(""));
  CHECK(time("") > 1ms);
}

TEST_CASE("what runs ahead shares ports with what is waited for, so that a late rank costs more than it is late") {
  // Recursive doubling of 16 MiB over 8 ranks, rank 0 late by D = 200 us. A message takes x on the wire and a = 1 us;
  // slots let s of it run ahead. All but 0 and 1 begin the second step at x + a; there rank 3 sends s ahead to rank 1,
  // to whom D - a of rank 0's message are still to come: they take twice as long, and rank 1 begins its second step at
  // x + 2 D. When rank 7 has done two steps, at 2 (x + a), 2 D - 2 a of rank 1's message to rank 3 are still to come,
  // more than the s that rank 7 sends ahead: all of these come first, and rank 3 begins its last step at
  // x + 2 D + x + s + a. It sends x to rank 7.
  const Topology net = star(8, {.bandwidth = 12'500'000'000_Bps, .latency = 500ns});
  const CheckedSchedule schedule = check(recursive_doubling_all_reduce(8, 16'777'216_B));
  const Picoseconds x{1'342'177'280}, a = 1us, s = x / 4, late = 200us;
  const auto time = [&](const char* protocol, Picoseconds by, NetworkModel model = NetworkModel::fair) {
    RunOptions options{.model = model, .plans = {{.protocol = find_protocol(protocol)}}};
    options.disturbance.late = {{0, SimTime{by}}};
    return run(net, schedule, options).duration();
  };
  CHECK(time("none", late) == late + 3 * (x + a));  // nothing runs ahead
  CHECK(time("simple", 0us) == 3 * (x + a));
  CHECK(time("simple", late) == x + 2 * late + x + s + a + x + a);
  CHECK(microseconds(time("simple", late) - time("simple", 0us)) == doctest::Approx(734.544).epsilon(1e-6));
  // It is not the fluid: packets take turns as well.
  CHECK(microseconds(time("simple", late, NetworkModel::packet)) ==
        doctest::Approx(microseconds(time("simple", late))).epsilon(0.002));
}

TEST_CASE("a byte more than the slots hold takes no less time") {
  for (const Bytes slots : {512_KiB, 4_MiB}) {
    Picoseconds before{0};
    for (const std::int64_t more : {-1, 0, 1, 2}) {
      const Schedule schedule = recursive_doubling_all_reduce(13, {slots.count + more});
      const Picoseconds time =
          run_with("simple", star(13, {.bandwidth = 10_GBps, .latency = 1us}), schedule).duration();
      CHECK(time >= before);
      before = time;
    }
  }
}

TEST_CASE("a schedule that needs slots runs under protocols that have them, as far as its messages fit") {
  const auto exchange = [](Bytes bytes) {  // each sends before it receives
    WrittenSchedule t(all_gather(2, bytes), 2, 1, 2);
    for (Actor r = 0; r < 2; ++r) {
      t.step(r).send(1 - r, chunk(r));
      t.step(r).receive(1 - r, chunk(1 - r));
    }
    return t.schedule();
  };
  const Topology net = one_cable();
  CHECK(run_with("simple", net, exchange(2000_B)).duration() == 1us + 3us);
  CHECK(run_with("ll", net, exchange(2000_B)).duration() == 2us + 3us);
  CHECK_THROWS_WITH_AS(run_with("none", net, exchange(2000_B)),
                       doctest::Contains("protocol none has no slots for them"), InputError);
  CHECK_THROWS_WITH_AS(run_with("simple", net, exchange(16_MiB)),
                       "with protocol simple, messages of up to 8 MiB are not sent as far ahead of their receivers as "
                       "the schedule by hand requires: a connection has 8 slots of 512 KiB, and at 4197.304 us all "
                       "ranks wait for each other\n  hint: cut the buffer into smaller pieces with transport.chunk, or "
                       "use smaller sizes",
                       InputError);
}

TEST_CASE("lanes that wait for each other end the run with an error, though background messages never end") {
  const auto exchange = [](Bytes bytes) {  // each sends its half before it receives
    WrittenSchedule t(all_gather(2, bytes), 2, 1, 2);
    for (Actor r = 0; r < 2; ++r) {
      t.step(r).send(1 - r, chunk(r));
      t.step(r).receive(1 - r, chunk(1 - r));
    }
    return check(t.schedule());
  };
  const Topology net = star(4, {.bandwidth = 10_GBps, .latency = 1us});
  for (const NetworkModel model : {NetworkModel::ideal, NetworkModel::fair, NetworkModel::packet}) {
    for (const Bytes traffic : {100_B, 1'000'000_B}) {
      RunOptions options{
          .model = model, .plans = {{.protocol = find_protocol("simple")}}, .placement = {NodeId{0}, NodeId{1}}};
      // One shares a port with the schedule, one does not. Rank 0 is 20 ms late: of the small ones 1024 have started
      // long before that.
      options.disturbance = {.late = {{0, SimTime{20ms}}},
                             .background = {{.from = NodeId{2}, .to = NodeId{1}, .bytes = traffic},
                                            {.from = NodeId{2}, .to = NodeId{3}, .bytes = traffic, .every = 200us}}};
      CHECK(run(net, exchange(2000_B), options).duration() > 20ms);
      CHECK_THROWS_WITH_AS(run(net, exchange(16_MiB), options),
                           doctest::Contains("messages of up to 8 MiB are not sent as far ahead"), InputError);
    }
  }
}

TEST_CASE("every algorithm runs under every protocol, no slower than the bytes on the wire under rendezvous") {
  // What may start earlier and ends earlier delays nobody if only the ports are shared. No path here adds 3 us per
  // step: on plain links protocols add no latency.
  for (const int ranks : {2, 3, 6}) {
    const Topology net = star(ranks, {.bandwidth = 10_GBps, .latency = 1us}, 4);
    for (const Schedule& schedule : every_algorithm(ranks, 100'003_B)) {
      CAPTURE(schedule.algorithm);
      CAPTURE(ranks);
      const Timeline none = run_with("none", net, schedule);
      for (const char* name : nccl) {
        CAPTURE(name);
        const Timeline t = run_with(name, net, schedule);
        CHECK(t.transfers == none.transfers);
        CHECK(t.bytes_sent >= none.bytes_sent);
        CHECK(t.actor_finish.size() == none.actor_finish.size());
      }
      CHECK(run_with("simple", net, schedule).bytes_sent == none.bytes_sent);
      CHECK(run_with("simple", net, schedule, NetworkModel::ideal).bytes_sent == none.bytes_sent);
    }
  }
}

TEST_CASE("packets know of protocols: one message at a time on a cable, the times are those of fair") {
  struct Messages {
    int n;
    Bytes size;
  };
  for (const char* protocol : nccl) {
    for (const Messages& each : {Messages{12, 1000_B}, {12, 0_B}, {3, 512_KiB + 1_B}, {1, 4_MiB + 1000_B}}) {
      for (const Picoseconds busy : {Picoseconds{0}, Picoseconds{100us}, Picoseconds{1s}}) {
        CAPTURE(protocol);
        CAPTURE(each.size.count);
        CAPTURE(busy.count());
        const Schedule schedule = stream(each.n, each.size, busy);
        const Timeline fair = run_with(protocol, one_cable(), schedule);
        const Timeline packets = run_with(protocol, one_cable(), schedule, NetworkModel::packet);
        CHECK(packets.actor_finish == fair.actor_finish);
        REQUIRE(packets.spans.size() == fair.spans.size());
        for (std::size_t i = 0; i < fair.spans.size(); ++i) {
          CHECK(packets.spans[i].start == fair.spans[i].start);
          CHECK(packets.spans[i].finish == fair.spans[i].finish);
        }
      }
    }
  }
}

TEST_CASE("a protocol's latency comes after the last packet") {
  // NVLink of 1 GB/s and 1 us; Simple takes 2.8 us more, LL128 1.3.
  TopologyBuilder builder;
  builder.add_cable(builder.add_gpu("a", 0), builder.add_gpu("b", 0),
                    {.bandwidth = 1_GBps, .latency = 1us, .kind = LinkKind::nvlink});
  const Topology net = builder.build();
  for (const NetworkModel model : {NetworkModel::fair, NetworkModel::packet}) {
    CHECK(run_with("simple", net, stream(1, 10'000_B, 0us), model).duration() == 10us + 1us + 2800ns);
    CHECK(run_with("simple", net, stream(1, 0_B, 0us), model).duration() == 1us + 2800ns);
    CHECK(run_with("ll", net, stream(1, 10'000_B, 0us), model).duration() == 20us + 1us);
    CHECK(run_with("ll128", net, stream(1, 0_B, 0us), model).duration() == 1us + 1300ns);
  }
}

TEST_CASE("LL is for small messages, LL128 for those between, Simple for large ones") {
  const ScenarioFile file = ScenarioFile::load(
      test::source_dir() + "/scenarios/questions/13-protocols.json",
      {"library=null", "collective.algorithm=ring", "transport={\"protocol\": [\"ll\", \"ll128\", \"simple\"]}"});
  std::map<std::pair<int, std::int64_t>, std::pair<Picoseconds, std::string>> best;  // [ranks, bytes]
  for (std::size_t i = 0; i < file.size(); ++i) {
    const Scenario point = file.point(i);
    const Prediction p = predict(point);
    auto& known = best[{p.request.ranks, p.request.bytes.count}];
    if (known.second.empty() || p.time < known.first) known = {p.time, std::string(point.protocol->name)};
  }
  std::map<int, std::string> in_order;
  for (const auto& [at, winner] : best) in_order[at.first] += winner.second + ' ';
  CHECK(in_order[8] == "ll ll ll ll128 simple ");
  CHECK(in_order[16] == "ll ll ll128 simple simple ");
}

TEST_CASE("launch and protocol come from the scenario, and a single rank launches nothing") {
  const auto time_of = [](const std::string& transport, int ranks) {
    return predict(ScenarioFile::parse(R"({"version": 1, "name": "t", "topology": {"kind": "star", "ranks": )" +
                                           std::to_string(ranks) +
                                           R"(, "link": {"bandwidth": "1 GB/s", "latency": "1 us"}},
      "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "2 kB"}, "transport": )" +
                                           transport + "}",
                                       "s.json")
                       .point(0))
        .time;
  };
  // Two steps of 1 us and 2 us of latency.
  CHECK(time_of(R"({"protocol": "none"})", 2) == 6us);
  CHECK(time_of(R"({"protocol": "none", "launch": "5 us"})", 2) == 11us);
  CHECK(time_of(R"({"protocol": "simple"})", 2) == 6us + Picoseconds{8'400'000});
  CHECK(time_of(R"({"protocol": "simple", "launch": "0 us"})", 2) == 6us);
  CHECK(time_of(R"({"protocol": "ll", "launch": "0 us"})", 2) == 8us);
  CHECK(time_of(R"({"protocol": "simple"})", 1) == 0us);
}

}  // namespace protocol_test
