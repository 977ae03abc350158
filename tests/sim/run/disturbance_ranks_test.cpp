// Ranks that are late, slow or unsteady, and the traffic of others.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>
#include <string>
#include <vector>

#include "algorithms/direct.hpp"
#include "algorithms/parameter_server.hpp"
#include "algorithms/ring.hpp"
#include "sim/base/error.hpp"
#include "tests/support/every_algorithm.hpp"
#include "tests/support/tiny.hpp"

namespace disturbance_ranks_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

const LinkSpec port{.bandwidth = 10_GBps, .latency = 1us};

Timeline run_with(const Topology& net, const Schedule& schedule, Disturbance disturbance) {
  return run(net, check(schedule), {.disturbance = std::move(disturbance)});
}

/// One message of 10 MB from gpu0 to gpu1 of a star, and what else there is: 1000 us at 10 GB/s, 2 us of latency.
Timeline one_message(const Disturbance& disturbance, NetworkModel model = NetworkModel::fair) {
  const Topology net = star(4, port);
  return run(net, check(direct_pairs(2, 10'000'000_B, false)),
             {.model = model, .disturbance = disturbance, .placement = {NodeId{0}, NodeId{1}}});
}

}  // namespace

TEST_CASE("a ring with a rank that is late by d ends exactly d later") {
  // All others wait for it, and their steps are as long as its own: nothing is made good, nothing is lost.
  for (const int n : {2, 3, 5, 8}) {
    const Topology net = star(n, port);
    for (const std::int64_t size : {0, 1, 1'000'003, 64'000'000}) {
      const Schedule ring = ring_all_reduce(n, {size});
      const Picoseconds plain = run_with(net, ring, {}).duration();
      for (const Picoseconds late : {Picoseconds{1_ps}, Picoseconds{777us}, Picoseconds{20ms}}) {
        CAPTURE(n);
        CAPTURE(size);
        const Timeline found = run_with(net, ring, {.late = {{n / 2, at(late)}}});
        // Chunks differ by a byte: which of them waits for which may shift by that byte's time per step.
        const std::int64_t most = size % n == 0 ? 0 : 2 * n * 100;
        CHECK((found.duration() - plain - late).count() <= 0);
        CHECK((found.duration() - plain - late).count() >= -most);
        REQUIRE(found.bottleneck);
        if (late > 1us) CHECK(found.bottleneck->delay == late);  // else other paths may be as long
      }
    }
  }
}

TEST_CASE("two late ranks cost what the later one costs") {
  const Topology net = star(6, port);
  const Schedule ring = ring_all_reduce(6, 60'000'000_B);
  CHECK(run_with(net, ring, {.late = {{1, at(3ms)}, {4, at(5ms)}, {4, at(2ms)}}}).duration() ==
        run_with(net, ring, {}).duration() + 5ms);
}

TEST_CASE("a rank that begins each step late adds its delay to every step of a ring") {
  // 2(n-1) steps of 1000 us + 2 us; each begins 5 us later at rank 0 and so at its neighbors, one after the other.
  const Topology net = star(4, port);
  const Timeline found = run_with(net, ring_all_reduce(4, 40'000'000_B), {.slow = {{0, 5us}}});
  CHECK(found.duration() == 6 * 1007us);
  REQUIRE(found.bottleneck);
  CHECK(found.bottleneck->delay == 6 * 5us);
  // Late and slow: the delay comes on top of the late start. Two delays of one rank add up.
  CHECK(run_with(net, ring_all_reduce(4, 40'000'000_B), {.late = {{0, at(1ms)}}, .slow = {{0, 2us}, {0, 3us}}})
            .duration() == 1ms + 6 * 1007us);
}

TEST_CASE("jitter is drawn for each step, evenly from 0 to the most, and a seed is all it takes to repeat it") {
  constexpr int n = 100'000;
  const Disturbance::Jitter jitter{.most = 9_ps, .seed = 7};
  std::vector<int> count(10);
  for (int i = 0; i < n; ++i) {
    const Picoseconds drawn = jitter_of(jitter, i % 17, i % 3, i / 51);
    REQUIRE(drawn >= 0_ps);
    REQUIRE(drawn <= 9_ps);
    ++count[static_cast<std::size_t>(drawn.count())];
  }
  // 10000 each is expected; six standard deviations are 6 sqrt(10000 * 0.9) = 569.
  for (const int times : count) CHECK(std::abs(times - n / 10) < 569);
  // Each argument counts.
  const Disturbance::Jitter wide{.most = 1s, .seed = 7};
  CHECK(std::set{jitter_of(wide, 0, 0, 0), jitter_of(wide, 1, 0, 0), jitter_of(wide, 0, 1, 0), jitter_of(wide, 0, 0, 1),
                 jitter_of({.most = 1s, .seed = 8}, 0, 0, 0)}
            .size() == 5);
}

TEST_CASE("with jitter a run ends no earlier, no later than the longest draws of all steps, and the same each time") {
  for (const int n : {2, 4, 7}) {
    const Topology net = star(n, port);
    for (const Schedule& schedule : every_algorithm(n, 1_MiB)) {
      if (schedule.actors > n) continue;
      CAPTURE(schedule.algorithm);
      const Picoseconds plain = run_with(net, schedule, {}).duration();
      std::set<std::uint64_t> seen;
      for (const std::uint64_t seed : {1U, 2U, 3U}) {
        const Disturbance disturbance{.jitter = {.most = 3us, .seed = seed}};
        const Timeline found = run_with(net, schedule, disturbance);
        CHECK(run_with(net, schedule, disturbance).fingerprint == found.fingerprint);
        seen.insert(*found.fingerprint);
        CHECK(found.transfers == run_with(net, schedule, {}).transfers);
        int steps = 0;
        for (Lane lane = 0; lane < schedule.lanes; ++lane)
          for (Actor actor = 0; actor < schedule.actors; ++actor) steps += schedule.n_steps(actor, lane);
        CHECK(found.duration() <= plain + steps * 3us);
        // Rings and exchanges have no shared links, so that nothing can end earlier for a delay.
        if (schedule.algorithm.starts_with("ring") || schedule.algorithm.starts_with("halving"))
          CHECK(found.duration() >= plain);
      }
      CHECK(seen.size() == 3);
    }
  }
}

TEST_CASE("a staged background message leaves no trace in the recorded path of the next message") {
  // gpu0 sends to gpu2 through gpu1, where it is staged, with 2 us of latency, while a message of 200 us goes in one
  // leg from gpu2 to gpu3: of its time nothing is staging.
  TopologyBuilder builder;
  for (const char* name : {"gpu0", "gpu1", "gpu2", "gpu3"}) builder.add_gpu(name);
  for (const std::uint32_t g : {0U, 1U, 2U})
    builder.add_cable(NodeId{g}, NodeId{g + 1}, {.bandwidth = 10_GBps, .latency = g == 2 ? 200us : 1us});
  RunOptions options{.placement = {NodeId{2}, NodeId{3}}, .record_path = true};
  options.disturbance.background = {{.from = NodeId{0}, .to = NodeId{2}, .bytes = 64_KiB}};
  const Timeline found = run(builder.build(), check(direct_pairs(2, 10'000'000_B, false)), options);
  CHECK(found.duration() == 1200us);
  REQUIRE(found.path.size() == 2);
  CHECK(found.path[0].cause == PathCause::link);
  CHECK(found.path[1].cause == PathCause::latency);
}

TEST_CASE("a background message that enters the same port takes half of it while it lasts") {
  const Topology net = star(4, port);
  const auto traffic = [&](Bytes bytes) {
    return Disturbance::Background{.from = NodeId{2}, .to = NodeId{1}, .bytes = bytes};
  };
  for (const NetworkModel model : {NetworkModel::ideal, NetworkModel::fair}) {
    CHECK(one_message({}, model).duration() == 1002us);
    // All the time: 2000 us. From 500 us on: 5 MB at 10 GB/s, 5 MB at 5: 1500 us. From another gpu to another: nothing.
    Disturbance disturbance{.background = {traffic(1'000'000'000_B)}};
    CHECK(one_message(disturbance, model).duration() == 2002us);
    disturbance.background[0].start = at(500us);
    CHECK(one_message(disturbance, model).duration() == 1502us);
    disturbance.background[0].to = NodeId{3};
    CHECK(one_message(disturbance, model).duration() == 1002us);
  }
  // Back to back, 1 MB each: 200 us shared, then 2 us of latency during which the port is free for 0.02 MB. Nine times
  // 1.02 MB in 202 us, then 0.82 MB at half the rate: 1818 + 164 us, and 2 us of latency.
  const Timeline back_to_back = one_message({.background = {traffic(1'000'000_B)}});
  CHECK(back_to_back.duration() == 1984us);
  CHECK(back_to_back.transfers == 1);
  CHECK(back_to_back.bytes_sent == 10'000'000_B);
  CHECK(back_to_back.link_bytes[link_between(net, "switch0", "gpu1").value] == 10'000'000_B);
  CHECK(back_to_back.link_bytes[link_between(net, "gpu2", "switch0").value] == 0_B);
  // Every 500 us: 200 us shared (1 MB), 300 us alone (3 MB); 8 MB at 1000 us, 1 MB shared until 1200 us, 1 MB alone.
  Disturbance disturbance{.background = {traffic(1'000'000_B)}};
  disturbance.background[0].every = 500us;
  CHECK(one_message(disturbance).duration() == 1302us);
  // No more after 400 us, or 500 us, at which one still starts: 9 MB left at 200 us; or 5 MB at 700 us.
  disturbance.background[0].until = at(400us);
  CHECK(one_message(disturbance).duration() == 1102us);
  disturbance.background[0].until = at(500us);
  CHECK(one_message(disturbance).duration() == 1202us);
  // Faster than they are delivered: they pile up. At 0, 100, 200 us: 1/2, then 1/3 of the port, ...
  disturbance.background[0].every = 100us;
  CHECK(one_message(disturbance).duration() > 1302us);
}

TEST_CASE("background messages take the links as they are: they go round a link that is down") {
  // gpu2 -> gpu1 is sent to for ever; its own port goes down for 300 us in which gpu0 has gpu1's port for itself.
  const Topology net = star(4, port);
  Disturbance disturbance{.background = {{.from = NodeId{2}, .to = NodeId{1}, .bytes = 1'000'000'000_B}}};
  const LinkId link = link_between(net, "gpu2", "switch0");
  disturbance.links = {{.to = LinkChange::To::down, .at = at(200us), .links = {link}},
                       {.to = LinkChange::To::restored, .at = at(500us), .links = {link}}};
  // 1 MB, 3 MB, then 6 MB at half the rate.
  CHECK(one_message(disturbance).duration() == 200us + 300us + 1200us + 2us);
  disturbance.links.pop_back();
  CHECK_THROWS_WITH_AS(one_message(disturbance),
                       "no path is left at 200 us for gpu2 -> gpu1: permanently down is gpu2 -> switch0\n  hint: "
                       "restore the link, so that messages wait for it, or add another path to the topology",
                       InputError);
}

TEST_CASE("background messages share links in the packet model as well") {
  const Disturbance disturbance{.background = {{.from = NodeId{2}, .to = NodeId{1}, .bytes = 1'000'000'000_B}}};
  const Picoseconds found = one_message(disturbance, NetworkModel::packet).duration();
  CHECK(std::abs((found - Picoseconds{2002us}).count()) < 2'000'000);  // within 5 packets of 4 KiB, 0.4 us each
}

TEST_CASE("a disturbed run is not folded, and says why") {
  const Topology net = star(8, port);
  const CheckedSchedule ring = check(ring_all_reduce(8, 8'000'000_B));
  RunOptions options{.disturbance = {.late = {{3, at(1ms)}}}, .fold_from = 0};
  CHECK(run(net, ring, options).not_folded ==
        "something disturbs the run, so ranks may do different things at the same time");
  CHECK(run(net, ring, {.fold_from = 0}).folded.has_value());
}

}  // namespace disturbance_ranks_test
