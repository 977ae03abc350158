// What a replay by sends and receives does when something fails: it says so, holds nothing, and nothing hangs.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "algorithms/parameter_server.hpp"
#include "algorithms/ring.hpp"
#include "sim/base/error.hpp"
#include "sim/schedule/collective.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/nccl_replay.hpp"
#include "tests/support/written_schedule.hpp"
#include "validate/replay/memory.hpp"

namespace nccl_replay_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace ringsim::replay;
using namespace ringsim::replay::gpu;
using namespace std::chrono_literals;
using ringsim::test::all_actors;
using ringsim::test::Came;
using ringsim::test::complaint;
using ringsim::test::FakeDevice;
using ringsim::test::FakeNccl;
using ringsim::test::one_run;
using ringsim::test::replay_alone;
using What = ringsim::replay::gpu::Command::What;

namespace {

/// Additions, an empty message, and a copy next to messages: two shards of a server's, of which rank 2's is empty.
Schedule of_much() { return stretched(sharded_parameter_server(3, {4}, 2), element_bytes); }
Schedule ring(int ranks, int elements) { return stretched(ring_all_reduce(ranks, {elements}), element_bytes); }
Plan plan_of(const Schedule& schedule) { return make_nccl_plan(schedule, all_actors(schedule)); }

/// Rank 0 receives once more than anybody sends to it.
Plan in_vain(const Schedule& schedule) {
  Plan plan = plan_of(schedule);
  const auto receive = std::find_if(plan.commands.begin(), plan.commands.end(),
                                    [](const Command& c) { return c.what == What::receive; });
  plan.commands.insert(receive, Command(*receive));
  return plan;
}

std::string doing(const std::string& said) { return said.substr(0, said.find(": the fake")); }

enum class Whose : std::uint8_t { gpu, nccl };

/// Has every call of the GPU's, or of NCCL's, fail in turn, in every way; what was being done each time.
std::set<std::string> fail_each(Whose whose, const Schedule& schedule, const Plan& plan, bool graph) {
  const Came whole = replay_alone(schedule, plan, one_run(graph));
  REQUIRE(whole.said == "right");
  const bool of_gpu = whose == Whose::gpu;
  std::vector<Fault> faults{Fault::memory, Fault::other};
  if (of_gpu) faults.push_back(Fault::lost);
  std::set<std::string> seen;
  for (int call = 0; call < (of_gpu ? whole.device_calls : whole.nccl_calls); ++call) {
    for (const Fault fault : faults) {
      test::Machine machine;
      (of_gpu ? machine.device.fails_at : machine.nccl.fails_at) = call;
      (of_gpu ? machine.device.fault : machine.nccl.fault) = fault;
      const Came came = replay_alone(schedule, plan, one_run(graph, 2s), machine);
      CAPTURE(call);
      CHECK(came.said.find(of_gpu ? "the fake GPU was set to fail\n  hint: "
                                  : "the fake NCCL was set to fail\n  hint: ") != std::string::npos);
      CHECK(came.aborted);
      CHECK(came.nothing_held);
      if (!of_gpu) CHECK(!came.abandoned);  // its GPU is well
      seen.insert(doing(came.said));
    }
  }
  return seen;
}

}  // namespace

TEST_CASE("a call of the GPU's that fails is an error of the machine, whichever it is; communicators are given up") {
  for (const auto& [schedule, is_library] : {std::pair{of_much(), false}, {ring(3, 6), true}}) {
    const Plan plan = is_library ? make_library_plan(schedule, all_actors(schedule)) : plan_of(schedule);
    for (const bool graph : {false, true}) {
      const std::set<std::string> seen = fail_each(Whose::gpu, schedule, plan, graph);
      CHECK(seen.contains("run 1 of 1: waiting for the GPU"));
      CHECK(seen.contains(graph ? "run 1 of 1: launching the graph" : "run 1 of 1: ending a run"));
      CHECK(seen.contains("allocating 8 B in GPU 1"));
      if (!is_library) CHECK(seen.contains("connecting communicator 1 of 1"));
    }
  }
}

TEST_CASE("a call of NCCL's that fails is an error of the machine with what was being done, whichever it is") {
  for (const auto& [schedule, is_library] : {std::pair{of_much(), false}, {ring(3, 6), true}}) {
    const Plan plan = is_library ? make_library_plan(schedule, all_actors(schedule)) : plan_of(schedule);
    for (const bool graph : {false, true}) {
      const std::set<std::string> seen = fail_each(Whose::nccl, schedule, plan, graph);
      CHECK(seen.contains("joining communicator 1 of 1"));
      CHECK(seen.contains("run 1 of 1: waiting for the peers"));  // also while kernels run
      const std::string where = graph ? "" : "run 1 of 1: ";
      CHECK(seen.contains(where + "beginning a group"));
      CHECK(seen.contains(where + "ending a group"));
      if (is_library) {
        CHECK(seen.contains("beginning all_reduce at rank 2 (GPU 2)"));
        continue;
      }
      CHECK(seen.contains("connecting communicator 1 of 1"));
      CHECK(seen.contains(where + "sending 8 B at rank 0 (GPU 0) to helper 3"));
      CHECK(seen.contains(where + "receiving 8 B at helper 4 (GPU 4) from rank 2"));
    }
  }
}

TEST_CASE("kernels that wait for ever are ended, and their GPU comes back; a GPU that stands still is let go") {
  const Schedule schedule = ring(3, 12);
  const Plan waits = in_vain(schedule);
  for (const bool graph : {false, true}) {
    const auto begin = std::chrono::steady_clock::now();
    const Came waited = replay_alone(schedule, waits, one_run(graph, 50ms));
    CHECK(waited.said ==
          "run 1 of 1: the GPU, or a peer that it waits for, did not finish within 50 ms\n  hint: to wait longer, use "
          "--timeout");
    CHECK(waited.aborted);
    CHECK(!waited.abandoned);
    CHECK(waited.nothing_held);
    for (const int operations : {0, 5, 40}) {
      const Came stood = replay_alone(schedule, plan_of(schedule), one_run(graph, 50ms),
                                      {.device = {.stalls_after = operations}, .nccl = {}});
      CHECK(stood.said.find("the GPU, or a peer that it waits for, did not finish within 50 ms") != std::string::npos);
      CHECK(stood.aborted);
      CHECK(stood.abandoned);
      CHECK(stood.nothing_held);
    }
    CHECK(std::chrono::steady_clock::now() - begin < 10s);
  }
}

TEST_CASE("who stops a replay does not wait: while it joins, and while kernels run") {
  const Schedule schedule = ring(2, 8);
  std::atomic<bool> stop{true};
  GpuOptions options = one_run(true);
  options.stop = &stop;
  // Rank 1 of two never joins.
  const Came joining = replay_alone(schedule, make_nccl_plan(schedule, std::array{0}), options);
  CHECK(joining.interrupted);
  CHECK(joining.said == "stopped while joining communicator 1 of 1");
  CHECK(joining.aborted);
  CHECK(joining.nothing_held);
  stop = false;
  options.barrier = [&] { stop = true; };
  const auto begin = std::chrono::steady_clock::now();
  const Came running = replay_alone(schedule, in_vain(schedule), options);
  CHECK(running.interrupted);
  CHECK(running.said == "stopped while the GPU was at work");
  CHECK(running.aborted);
  CHECK(!running.abandoned);
  CHECK(running.nothing_held);
  CHECK(std::chrono::steady_clock::now() - begin < 10s);
}

TEST_CASE("each rank needs a GPU of its own, and a server's data lies on one as well") {
  const Schedule schedule = of_much();
  const Plan plan = plan_of(schedule);
  FakeDevice device({.gpus = 4});
  FakeNccl nccl(device);
  const auto replay = [&](const Places& places) { replay_part(device, &nccl, schedule, plan, places, one_run(true)); };
  CHECK_THROWS_WITH_AS(replay(place_actors(schedule, 4, false)),
                       "rank 0 and helper 4 would share GPU 0, but NCCL requires separate GPUs\n  hint: use fewer "
                       "ranks, more GPUs, or --backend cuda, which lets ranks share a GPU",
                       EnvironmentError);
  CHECK(complaint([&] { replay(place_actors(schedule, 4, true)); }) ==
        "expected all actors on GPUs, found helper 3 in host memory\n  hint: NCCL sends from GPU to GPU; for "
        "`\"servers_on\": \"cpu\"`, use --backend cuda");
  CHECK(device.calls() == 0);
  CHECK(nccl.calls() == 0);
}

}  // namespace nccl_replay_test
