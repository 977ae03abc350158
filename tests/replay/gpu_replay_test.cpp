// Schedules planned as commands to streams, and carried out by a fake GPU, in random legal orders.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "algorithms/parameter_server.hpp"
#include "algorithms/ring.hpp"
#include "sim/base/error.hpp"
#include "sim/schedule/collective.hpp"
#include "tests/support/every_algorithm.hpp"
#include "tests/support/fakes/fake_device.hpp"
#include "tests/support/written_schedule.hpp"
#include "validate/replay/gpu/gpu_replay.hpp"
#include "validate/replay/memory.hpp"

namespace gpu_replay_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace ringsim::replay;
using namespace ringsim::replay::gpu;
using namespace std::chrono_literals;
using ringsim::test::FakeDevice;
using ringsim::test::FakeSettings;

namespace {

GpuOptions once(bool graph) { return {.repeats = {.warmups = 0, .timed = 1}, .graph = graph, .patience = 10s}; }

/// "right", or the first wrong element.
std::string outcome(const Schedule& schedule, const Plan& plan, int gpus, bool on_host, bool graph,
                    std::uint64_t seed) {
  FakeDevice device({.gpus = gpus, .seed = seed});
  const Places places = place_actors(schedule, gpus, on_host);
  const Measured measured = replay_plan(device, schedule, plan, places, once(graph));
  CHECK(device.held() == 0);
  return measured.wrong == 0 ? "right" : measured.first_wrong;
}

std::int64_t count(const Plan& plan, Command::What what) {
  return std::count_if(plan.commands.begin(), plan.commands.end(), [&](const Command& c) { return c.what == what; });
}

/// The message of the failure; "" where there is none.
std::string failure(FakeDevice& device, const Schedule& schedule, GpuOptions options) {
  try {
    replay_on(device, check(schedule), place_actors(schedule, device.gpus(), true), options);
  } catch (const EnvironmentError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("every algorithm comes out right to the bit on 2 to 9 virtual ranks and on as many GPUs, in random orders") {
  for (int ranks = 2; ranks <= 9; ++ranks) {
    // Chunks of two sizes; and fewer elements than ranks, so that some chunks are empty.
    for (const Bytes elements : {Bytes{2 * ranks + 3}, Bytes{ranks - 1}}) {
      for (const Schedule& made : every_algorithm(ranks, elements)) {
        const Schedule schedule = stretched(made, element_bytes);
        const Plan plan = make_plan(schedule);
        for (const std::uint64_t seed : {0U, 1U, 2U}) {
          CAPTURE(ranks);
          CAPTURE(elements.count);
          CAPTURE(schedule.algorithm);
          CAPTURE(to_string(schedule.collective.op));
          CAPTURE(seed);
          const int gpus = seed == 0 ? 1 : seed == 1 ? ranks : 2;
          CHECK(outcome(schedule, plan, gpus, seed == 2, seed != 1, seed) == "right");
        }
      }
    }
  }
}

TEST_CASE("a plan has a copy for each message, an addition for each that is added, and no wait before its record") {
  const int n = 5;
  const Schedule ring = stretched(ring_all_reduce(n, {10}), element_bytes);
  const Plan plan = make_plan(ring);
  CHECK(count(plan, Command::What::copy) == 2 * n * (n - 1));  // 2(n-1) steps, each rank sends once a step
  CHECK(count(plan, Command::What::add) == n * (n - 1));       // in the first half of them
  CHECK(plan.stream_of.size() == 1 + n);                       // the beginning and the end; one lane a rank
  for (const Schedule& made : every_algorithm(6, {17})) {
    CAPTURE(made.algorithm);
    const Plan any = make_plan(stretched(made, element_bytes));
    std::set<std::uint32_t> recorded, waited;
    bool in_order = true;
    for (const Command& command : any.commands) {
      if (command.what == Command::What::record) in_order = in_order && recorded.insert(command.event).second;
      if (command.what == Command::What::wait) in_order = in_order && recorded.contains(command.event);
      if (command.what == Command::What::wait) waited.insert(command.event);
    }
    CHECK(in_order);
    CHECK(recorded == waited);  // none is recorded for nobody
  }
}

TEST_CASE(
    "what a step starts together runs together: the sends of a parameter server's root are on streams of their own") {
  const Schedule schedule = stretched(parameter_server(4, {8}, 0), element_bytes);
  const Plan plan = make_plan(schedule);
  std::set<std::uint32_t> from_root;
  for (const Command& command : plan.commands)
    if (command.what == Command::What::copy && command.from.actor == 0) from_root.insert(command.stream);
  CHECK(from_root.size() == 3);
  for (const std::uint32_t stream : from_root) CHECK(plan.stream_of[stream] == 0);
  // What comes in at once has room for all of it.
  CHECK(plan.elements[0][incoming_room] == 3 * 8);
  CHECK(plan.elements[1][incoming_room] == 0);
}

TEST_CASE(
    "of a ring's plan no wait for an arrival can be left out without wrong numbers, nor all for a room to be free") {
  const Schedule schedule = stretched(ring_all_reduce(4, {8}), element_bytes);
  const Plan plan = make_plan(schedule);
  std::vector<bool> arrives(plan.event_on.size(), false);  // [event] recorded right after a copy on its stream
  std::vector<bool> copied(plan.stream_of.size(), false);
  int arrivals = 0, rooms = 0, rooms_seen = 0;
  const auto comes_later = [&](std::size_t i) {  // another wait of the same stream
    return std::any_of(
        plan.commands.begin() + static_cast<std::ptrdiff_t>(i) + 1, plan.commands.end(),
        [&](const Command& c) { return c.what == Command::What::wait && c.stream == plan.commands[i].stream; });
  };
  for (std::size_t i = 0; i < plan.commands.size(); ++i) {
    const Command& command = plan.commands[i];
    if (command.what == Command::What::record) arrives[command.event] = copied[command.stream];
    if (command.what != Command::What::record) copied[command.stream] = command.what == Command::What::copy;
    // That all begin after stream 0 and end before it orders the timing; the buffers were filled before.
    if (command.what != Command::What::wait || command.stream == 0 || plan.event_on[command.event] == 0) continue;
    Plan broken = plan;
    broken.commands.erase(broken.commands.begin() + static_cast<std::ptrdiff_t>(i));
    bool seen = false;
    const int most = arrives[command.event] ? 5000 : 200;  // seeds: a copy that comes late twice over is rare
    if (comes_later(i))
      for (int seed = 0; seed < most && !seen; ++seed)
        seen = outcome(schedule, broken, 1, false, false, static_cast<std::uint64_t>(seed)) != "right";
    if (!arrives[command.event]) {
      ++rooms;
      rooms_seen += seen ? 1 : 0;
      continue;
    }
    ++arrivals;
    CAPTURE(i);
    CHECK(seen == comes_later(i));  // after the last, stream 0 waits for all copies by itself
  }
  CHECK(arrivals == 2 * 4 * 3);  // one per message
  // A copy waits for its receiver's step to begin, as the simulator's does: most would find their room free anyway.
  CHECK(rooms == 2 * 4 * 3);
  CHECK(rooms_seen > 0);
}

TEST_CASE("two lanes may add to one chunk at a time: on streams one comes after the other") {
  // Rank 0 receives from ranks 1 and 2 in lanes of their own.
  WrittenSchedule t(reduce(3, 4_B, 0), 3, 2, 1);
  t.step(0, 0).receive_add(1, chunk(0));
  t.step(0, 1).receive_add(2, chunk(0));
  t.step(1).send(0, chunk(0));
  t.step(2).send(0, chunk(0));
  const Schedule schedule = t.schedule();
  const Plan plan = make_plan(schedule);
  for (std::uint64_t seed = 0; seed < 50; ++seed) CHECK(outcome(schedule, plan, 1, false, true, seed) == "right");
  // Without the wait between the two adds, one of them is lost now and then.
  Plan broken = plan;
  const auto last_add = std::find_if(broken.commands.rbegin(), broken.commands.rend(),
                                     [](const Command& c) { return c.what == Command::What::add; });
  REQUIRE(last_add + 1 != broken.commands.rend());
  REQUIRE((last_add + 1)->what == Command::What::wait);
  broken.commands.erase((last_add + 2).base());
  bool seen = false;
  for (std::uint64_t seed = 0; seed < 100 && !seen; ++seed)
    seen = outcome(schedule, broken, 1, false, false, seed) != "right";
  CHECK(seen);
}

TEST_CASE("what was never written is poison on GPUs as well: passed on, it shows as not a number") {
  // A broadcast in which rank 0, the root, hears from rank 1 instead.
  WrittenSchedule t(broadcast(2, 8_B, 0), 2, 1, 1);
  t.step(1).send(0, chunk(0));
  t.step(0).receive(1, chunk(0));
  const Schedule schedule = t.schedule();
  CHECK(outcome(schedule, make_plan(schedule), 2, false, true, 0) ==
        fmt::format("rank 0: data[0], element 0: expected {}, found nan", contribution(2, 0, 0, 0)));
}

TEST_CASE("a step that computes is as long as it says, on the GPU's clock") {
  WrittenSchedule t(all_reduce(1, 4_B), 1, 1, 1);
  t.step(0).compute(Picoseconds(7us));
  FakeDevice device({});
  const Measured measured =
      replay_on(device, check(t.schedule()), {0}, {.repeats = {.warmups = 1, .timed = 3}, .graph = true});
  CHECK(measured.min == measured.max);
  CHECK(measured.median >= Picoseconds(7us));
  CHECK(measured.median <= Picoseconds(9us));  // and the fake's time for a few calls
}

TEST_CASE("runs that warm up do not count") {
  const Schedule schedule = stretched(ring_all_reduce(3, {6}), element_bytes);
  const auto spread = [&](int warmups) {
    ringsim::test::FakeCosts costs;
    costs.first = 50us;
    FakeDevice device({.costs = costs});
    const Measured measured = replay_on(device, check(schedule), place_actors(schedule, 1, false),
                                        {.repeats = {.warmups = warmups, .timed = 3}, .graph = true});
    return measured.max - measured.min;
  };
  CHECK(spread(0) == Picoseconds(50us));
  CHECK(spread(1) == Picoseconds(0));
}

TEST_CASE("a call that fails is an error of the machine with what was being done, whichever call it is") {
  const Schedule schedule = stretched(sharded_parameter_server(3, {6}, 2), element_bytes);
  for (const bool graph : {false, true}) {
    FakeDevice whole({});
    REQUIRE(failure(whole, schedule, once(graph)).empty());
    std::set<std::string> seen;
    for (int call = 0; call < whole.calls(); ++call) {
      for (const Fault fault : {Fault::memory, Fault::lost, Fault::other}) {
        FakeDevice device({.fails_at = call, .fault = fault});
        const std::string said = failure(device, schedule, once(graph));
        CAPTURE(call);
        CHECK(said.find("the fake GPU was set to fail\n  hint: ") != std::string::npos);
        CHECK(device.held() == 0);
        seen.insert(said.substr(0, said.find(": the fake")));
      }
    }
    CHECK(seen.contains("allocating 24 B in GPU 0 for rank 0"));
    CHECK(seen.contains("allocating 36 B in host memory for helper 3") == true);
    CHECK(seen.contains("run 1 of 1: waiting for the GPU"));
    CHECK(seen.contains(graph ? "run 1 of 1: launching the graph"
                              : "run 1 of 1: copying 12 B from rank 0 (GPU 0) to helper 3 (host memory)"));
  }
}

TEST_CASE("a GPU without room says how much was asked for, where, for whom, and what to do") {
  const Schedule schedule = stretched(ring_all_reduce(4, {1024}), element_bytes);
  FakeDevice device({.elements = 3000});
  CHECK(failure(device, schedule, once(true)) ==
        "allocating 4 KiB in GPU 0 for rank 2: the fake GPU is full\n  hint: use smaller messages or fewer ranks, or "
        "stop other processes on the GPU; `nvidia-smi` lists them");
  CHECK(device.held() == 0);
}

TEST_CASE("a GPU that stands still is given up within the time-out, and not waited for when things are freed") {
  const Schedule schedule = stretched(ring_all_reduce(4, {64}), element_bytes);
  GpuOptions options = once(false);
  options.patience = 20ms;
  for (const int operations : {0, 3, 60}) {
    FakeDevice device({.stalls_after = operations});
    const auto begin = std::chrono::steady_clock::now();
    CHECK(failure(device, schedule, options) ==
          "run 1 of 1: the GPU did not finish within 20 ms\n  hint: to wait longer, use --timeout");
    CHECK(std::chrono::steady_clock::now() - begin < 5s);
    CHECK(device.abandoned());
  }
  // Stopped by the user.
  FakeDevice device({.stalls_after = 3});
  const std::atomic<bool> stop{true};
  options.stop = &stop;
  CHECK_THROWS_AS(failure(device, schedule, options), Interrupted);
  CHECK(device.abandoned());
}

TEST_CASE("our own misuse of a device is our mistake, not the machine's") {
  const Schedule schedule = stretched(ring_all_reduce(3, {6}), element_bytes);
  Plan plan = make_plan(schedule);
  // Stream 0 no longer waits for the others at the end: no graph can be made of that.
  std::erase_if(plan.commands, [](const Command& c) { return c.what == Command::What::wait && c.stream == 0; });
  FakeDevice device({});
  CHECK_THROWS_WITH_AS(replay_plan(device, schedule, plan, place_actors(schedule, 1, false), once(true)),
                       "making a graph: a capture with work that its origin does not wait for", InvariantError);
  CHECK(device.held() == 0);
}

}  // namespace gpu_replay_test
