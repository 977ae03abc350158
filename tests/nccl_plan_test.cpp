// Schedules planned as groups of sends and receives, and carried out by a NCCL that is none, in random legal orders.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "algorithms/parameter_server.hpp"
#include "algorithms/ring.hpp"
#include "sim/collective.hpp"
#include "sim/error.hpp"
#include "tests/support/every_algorithm.hpp"
#include "tests/support/fake_nccl.hpp"
#include "tests/support/table.hpp"
#include "validate/replay/gpu/gpu_replay.hpp"
#include "validate/replay/memory.hpp"

using namespace ringsim;
using namespace ringsim::literals;
using namespace ringsim::replay;
using namespace ringsim::replay::gpu;
using namespace std::chrono_literals;
using ringsim::test::FakeDevice;
using ringsim::test::FakeNccl;
using What = ringsim::replay::gpu::Command::What;

namespace {

std::vector<Actor> all_of(const Schedule& schedule) {
  std::vector<Actor> all(static_cast<std::size_t>(schedule.actors));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

GpuOptions once(bool graph, std::chrono::milliseconds patience = 60s) {
  return {.repeats = {.warmups = 0, .timed = 1}, .graph = graph, .patience = patience};
}

/// "right", the first wrong element, or why it was given up. One process, a GPU for each actor.
std::string outcome(const Schedule& schedule, const Plan& plan, bool graph, std::uint64_t seed,
                    std::chrono::milliseconds patience = 60s) {
  FakeDevice device({.gpus = schedule.actors, .seed = seed});
  FakeNccl nccl(device);
  std::string said = "right";
  try {
    const ActorRecord record = replay_part(device, &nccl, schedule, plan, place_actors(schedule, schedule.actors, false),
                                           once(graph, patience));
    CHECK(nccl.expected() == static_cast<int>(plan.communicators.size()));
    CHECK(!nccl.aborted());
    if (record.wrong > 0) said = record.first_wrong;
  } catch (const EnvironmentError& error) {
    said = error.what();
    CHECK(nccl.aborted());
  }
  CHECK(nccl.held() == 0);
  CHECK(!nccl.left_at_work());
  CHECK(device.held() == 0);
  return said;
}

std::int64_t count(const Plan& plan, What what) {
  return std::count_if(plan.commands.begin(), plan.commands.end(), [&](const Command& c) { return c.what == what; });
}

/// How many communicators a channel and a lane of the sender would make.
std::size_t channels_and_lanes(const Schedule& schedule) {
  std::set<std::pair<int, Lane>> found;
  Step step;
  for (Actor actor = 0; actor < schedule.actors; ++actor) {
    for (Lane lane = 0; lane < schedule.lanes; ++lane) {
      for (int i = 0; i < schedule.n_steps(actor, lane); ++i) {
        step.clear();
        schedule.step(actor, lane, i, step);
        for (const Op& op : step.ops)
          if (op.what == Do::send) found.insert({op.channel, lane});
      }
    }
  }
  return found.size();
}

}  // namespace

TEST_CASE("every algorithm comes out right to the bit by sends and receives on 2 to 9 ranks, in random orders") {
  for (int ranks = 2; ranks <= 9; ++ranks) {
    // Chunks of two sizes; and fewer elements than ranks, so that some messages are empty.
    for (const Bytes elements : {Bytes{2 * ranks + 3}, Bytes{ranks - 1}}) {
      for (const Schedule& made : every_algorithm(ranks, elements)) {
        const Schedule schedule = stretched(made, element_bytes);
        const Plan plan = make_nccl_plan(schedule, all_of(schedule));
        if (plan.communicators.size() > channels_and_lanes(schedule)) MESSAGE(schedule.algorithm << " " << plan.communicators.size() << " " << channels_and_lanes(schedule));
        for (const std::uint64_t seed : {0U, 1U}) {
          CAPTURE(ranks);
          CAPTURE(elements.count);
          CAPTURE(schedule.algorithm);
          CAPTURE(to_string(schedule.collective.op));
          CAPTURE(seed);
          CHECK(outcome(schedule, plan, seed == 1, seed) == "right");
        }
      }
    }
  }
}

TEST_CASE("a step is one group at each rank, with a send and a receive; what comes in is added behind it") {
  const int n = 5;
  const Schedule ring = stretched(ring_all_reduce(n, {10}), element_bytes);
  const Plan plan = make_nccl_plan(ring, all_of(ring));
  CHECK(count(plan, What::begin_group) == 2 * n * (n - 1));  // 2(n-1) steps
  CHECK(count(plan, What::end_group) == 2 * n * (n - 1));
  CHECK(count(plan, What::send) == 2 * n * (n - 1));
  CHECK(count(plan, What::receive) == 2 * n * (n - 1));
  CHECK(count(plan, What::add) == n * (n - 1));  // in the first half of them
  CHECK(count(plan, What::copy) == 0);
  CHECK(plan.communicators == std::vector<int>{n});  // of one lane and one channel
  CHECK(plan.stream_of.size() == 1 + n);             // the beginning and the end; one lane a rank
}

TEST_CASE("no end of a communicator is used by two lanes, and no channel shares one with another") {
}

TEST_CASE("the plan of some actors is that of all of them without the others' part") {
}
