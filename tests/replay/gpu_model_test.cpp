// Plans timed by what a probe measured: worked out by hand, and compared with a fake GPU.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "algorithms/exchanges/halving_doubling.hpp"
#include "algorithms/parameter_server.hpp"
#include "algorithms/ring.hpp"
#include "sim/base/error.hpp"
#include "sim/check/check.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/fakes/fake_device.hpp"
#include "validate/replay/gpu/gpu_model.hpp"
#include "validate/replay/gpu/gpu_replay.hpp"
#include "validate/replay/memory.hpp"

namespace gpu_model_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace ringsim::replay;
using namespace ringsim::replay::gpu;
using namespace std::chrono_literals;
using ringsim::test::FakeCosts;
using ringsim::test::FakeDevice;

namespace {

/// As FakeCosts has it: copies 2 us and 2 TB/s within, 40 GB/s to the host, 50 back; additions 3 us and 1 TB/s, on the
/// CPU 10 GB/s.
Probe of_fake() {
  static const Probe probed = [] {
    FakeDevice device({});
    ProbeOptions options;
    options.sizes = {4000_B, 40000_B, 400000_B};
    options.blocks = {4};
    options.repeats = 1;
    options.operations = 2;
    return probe(device, options);
  }();
  return probed;
}

/// Where the host takes so long for a call.
Probe of_host(Picoseconds call) {
  Probe probed = of_fake();
  for (Sample& sample : probed.samples) {
    if (sample.asked == Asked::issue) sample.time = call;
    if (sample.asked == Asked::events)
      sample.time = 3 * call;  // an event recorded and one waited for are calls as well
  }
  return probed;
}

/// A graph is launched by one call of 1 us.
constexpr Picoseconds launch(1us);

Picoseconds modeled(const Schedule& schedule, bool on_host, Serving serving, int blocks = 0) {
  return predict_plan(make_plan(schedule), place_actors(schedule, 1, on_host), of_fake(), {serving, true, blocks});
}

Picoseconds measured(const Schedule& schedule, std::uint64_t seed, int blocks) {
  FakeDevice device({.seed = seed});
  return replay_on(device, check(schedule), place_actors(schedule, 1, false),
                   {.repeats = {.warmups = 0, .timed = 1}, .copy_blocks = blocks})
      .median;
}

}  // namespace

TEST_CASE("where one memory serves all in turn, a plan takes the sum of its copies and additions, as on the fake GPU") {
  // 4 KB a chunk of the ring: 24 copies of 2002 ns, 12 additions of 3004 ns.
  const Schedule ring = stretched(ring_all_reduce(4, {4000}), element_bytes);
  CHECK(modeled(ring, false, Serving::in_turn) == launch + Picoseconds(24 * 2002ns + 12 * 3004ns));
  // By kernels of four blocks: 3 us, and 4 KB at 100 GB/s.
  CHECK(modeled(ring, false, Serving::in_turn, 4) == launch + Picoseconds(24 * 3040ns + 12 * 3004ns));
  for (const Schedule& schedule : {ring, stretched(halving_doubling(8, {8000}, Fold::naive), element_bytes),
                                   stretched(parameter_server(4, {4000}, 1), element_bytes)}) {
    for (const std::uint64_t seed : {1U, 2U}) {
      for (const int blocks : {0, 4}) {
        CAPTURE(schedule.algorithm);
        CHECK(measured(schedule, seed, blocks) == modeled(schedule, false, Serving::in_turn, blocks));
      }
    }
  }
}

TEST_CASE("a copy or an addition that waits for an event takes what a hop costs beyond a node") {
  Probe probed = of_fake();
  for (Sample& sample : probed.samples)
    if (sample.asked == Asked::hop) sample.time += Picoseconds(500ns);
  const Schedule ring = stretched(ring_all_reduce(4, {4000}), element_bytes);
  const Places places = place_actors(ring, 1, false);
  // All do: copies for their receiver's step, additions for what they add.
  CHECK(predict_plan(make_plan(ring), places, probed, {Serving::in_turn}) ==
        launch + Picoseconds(24 * 2502ns + 12 * 3504ns));
}

TEST_CASE("call by call, a host that is slower than its GPU decides: every command takes a call") {
  FakeCosts costs;
  costs.call = 7us;  // the longest operation takes 3.04
  const Schedule ring = stretched(ring_all_reduce(4, {4000}), element_bytes);
  const Plan plan = make_plan(ring);
  const Places places = place_actors(ring, 1, false);
  FakeDevice device({.costs = costs});
  const Picoseconds found =
      replay_on(device, check(ring), places, {.repeats = {.warmups = 0, .timed = 1}, .graph = false}).median;
  // The call that ends the time is one more.
  CHECK(found == Picoseconds(7us) * (static_cast<int>(plan.commands.size()) + 1));
  CHECK(predict_plan(plan, places, of_host(7us), {Serving::in_turn, false}) ==
        Picoseconds(7us) * static_cast<int>(plan.commands.size()));
}

TEST_CASE("call by call, a host that is much faster than its GPU hardly shows") {
  const Schedule ring = stretched(ring_all_reduce(4, {4000}), element_bytes);
  const Places places = place_actors(ring, 1, false);
  const Picoseconds in_turn = predict_plan(make_plan(ring), places, of_host(1ns), {Serving::in_turn, false});
  CHECK(in_turn > Picoseconds(24 * 2002ns + 12 * 3004ns));
  CHECK(in_turn < Picoseconds(24 * 2002ns + 12 * 3004ns + 10ns));
}

TEST_CASE("where they share, latencies pass side by side, and bytes take as long as all of them together") {
  const Schedule ring = stretched(ring_all_reduce(4, {4000}), element_bytes);
  // Three steps of 2 us, 4 x 4 KB at 2 TB/s; 3 us, 4 x 4 KB at 1 TB/s. Three more of copies alone.
  CHECK(modeled(ring, false, Serving::shared) == launch + Picoseconds(6 * 2008ns + 3 * 3016ns));
}

TEST_CASE("kernels of few blocks are links of their own until the memory has no more: then they share it") {
  // Four blocks copy 100 GB/s, the memory 2 TB/s. A broadcast by the parameter server's second half alone would do;
  // here a ring of 30 ranks, in which 30 copies go at once: 20 of them would have room.
  for (const int ranks : {4, 20, 30}) {
    const Schedule ring = stretched(ring_all_reduce(ranks, {1000 * ranks}), element_bytes);
    const std::int64_t slower = ranks <= 20 ? 2 : 3;  // halves: 30 of 20 take 3/2 times as long
    const Picoseconds copy = Picoseconds(3us) + Picoseconds(40ns) * slower / 2;
    // All add at once, 4 KB each at 1 TB/s in all.
    const Picoseconds add = Picoseconds(3us) + Picoseconds(4ns) * ranks;
    CAPTURE(ranks);
    CHECK(modeled(ring, false, Serving::shared, 4) == launch + 2 * (ranks - 1) * copy + (ranks - 1) * add);
  }
}

TEST_CASE("ways to the host and back are apart; the CPU adds one after the other") {
  // Two ranks and a server in host memory, 40 KB: up, both added, down.
  const Schedule schedule = stretched(sharded_parameter_server(2, {10000}, 1), element_bytes);
  // In turn: the first is up at 3, the second at 6; 3 us and 4 us to add each; down twice 2 us and 0.8 us.
  CHECK(modeled(schedule, true, Serving::in_turn) == launch + Picoseconds(3us + 7us + 7us + 2800ns + 2800ns));
  // Shared: both are up at 2 + 2 us; the additions are of one stream; both go down at 2 + 1.6 us.
  CHECK(modeled(schedule, true, Serving::shared) == launch + Picoseconds(4us + 7us + 7us + 3600ns));
}

TEST_CASE("the error names what the probe did not measure") {
  const Schedule ring = stretched(ring_all_reduce(2, {4000}), element_bytes);
  CHECK_THROWS_WITH_AS(modeled(ring, false, Serving::shared, 7),
                       "expected samples of copy_kernel from gpu0 to gpu0, of two sizes at least\n"
                       "  hint: `ringsim probe --samples FILE` measures them",
                       InputError);
}

TEST_CASE("a probe's table is read back as it was; errors in it are reported by line") {
  const std::string text = to_csv(of_fake());
  const Probe back = read_probe(text, "probe.csv");
  CHECK(to_csv(back) == text);
  CHECK(back.gpus == 1);
  const std::string head = "what,from,to,blocks,bytes,time_us,min_us,max_us,GBps\n";
  const auto refused = [](const std::string& table) -> std::string {
    return ringsim::test::complaint([&] { read_probe(table, "p.csv"); });
  };
  CHECK(refused("what,from\n") ==
        "p.csv:1: expected what,from,to,blocks,bytes,time_us,min_us,max_us,GBps, found \"what,from\"\n"
        "  hint: `ringsim probe --samples` writes it");
  CHECK(refused(head) == "p.csv: expected samples, found none");
  CHECK(refused(head + "copy,gpu0,gpu0,0,4\n") ==
        "p.csv:2: expected what,from,to,blocks,bytes,time_us,min_us,max_us,GBps, found 5 cells");
  CHECK(refused(head + "cpoy,gpu0,gpu0,0,4,1,1,1,1\n") ==
        "p.csv:2: expected what `ringsim probe` measures, found \"cpoy\"");
  CHECK(refused(head + "copy,gpu0,disk,0,4,1,1,1,1\n") == "p.csv:2: expected host or gpu0, gpu1..., found \"disk\"");
  CHECK(refused(head + "copy,gpu0,gpu0,0,4,-1,1,1,1\n") == "p.csv:2: expected a number from 0 on, found \"-1\"");
  CHECK(refused(head + "copy,gpu0,gpu0,0,4,nan,1,1,1\n") == "p.csv:2: expected a time in microseconds, found \"nan\"");
}

}  // namespace gpu_model_test
