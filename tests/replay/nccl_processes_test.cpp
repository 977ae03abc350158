// Replays by sends and receives in several processes (threads here), each with a plan for its own actors.
#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "algorithms/ring.hpp"
#include "sim/schedule/collective.hpp"
#include "tests/support/every_algorithm.hpp"
#include "tests/support/nccl_replay.hpp"
#include "validate/replay/memory.hpp"

namespace nccl_processes_test {

using namespace ringsim;
using namespace ringsim::replay;
using namespace ringsim::replay::gpu;
using namespace std::chrono_literals;
using ringsim::test::all_actors;
using ringsim::test::Came;
using ringsim::test::Machine;
using ringsim::test::one_run;
using ringsim::test::replay_together;

namespace {

using Parts = std::vector<std::vector<Actor>>;

/// `each` actors a process.
Parts parts_of(const Schedule& schedule, int each) {
  Parts parts;
  for (const Actor actor : all_actors(schedule)) {
    if (actor % each == 0) parts.emplace_back();
    parts.back().push_back(actor);
  }
  return parts;
}

std::vector<Machine> machines(const Parts& parts, std::uint64_t seed) {
  std::vector<Machine> all(parts.size());
  for (std::size_t p = 0; p < all.size(); ++p) all[p].device.seed = seed * 100 + p;
  return all;
}

void all_right(const Schedule& schedule, const Parts& parts, const ringsim::test::MakePlan& make, std::uint64_t seed) {
  CAPTURE(schedule.algorithm);
  CAPTURE(to_string(schedule.collective.op));
  CAPTURE(parts.size());
  CAPTURE(seed);
  GpuOptions options = one_run(seed % 2 == 1);
  options.repeats = {.warmups = seed == 2 ? 1 : 0, .timed = seed == 2 ? 2 : 1};
  for (const Came& came : replay_together(schedule, parts, make, options, machines(parts, seed))) {
    CHECK(came.said == "right");
    CHECK(came.nothing_held);
    CHECK(!came.aborted);
    CHECK(!came.abandoned);
  }
}

Schedule ring(int ranks, int elements) { return stretched(ring_all_reduce(ranks, {elements}), element_bytes); }

}  // namespace

TEST_CASE("every algorithm comes out right to the bit in a process for each actor, and in one for every two") {
  for (const int ranks : {2, 3, 4, 5, 8}) {
    for (const Schedule& made : every_algorithm(ranks, {2 * ranks + 3})) {
      const Schedule schedule = stretched(made, element_bytes);
      all_right(schedule, parts_of(schedule, 1), make_nccl_plan, 0);
      all_right(schedule, parts_of(schedule, 2), make_nccl_plan, 1);
    }
  }
}

TEST_CASE("the library's collectives come out right to the bit in several processes") {
  for (const int ranks : {2, 3, 5, 8}) {
    const Bytes blocks{std::int64_t{3} * ranks};
    for (const Schedule& made :
         {ring_all_reduce(ranks, {2 * ranks + 3}), ring_reduce_scatter(ranks, blocks), ring_all_gather(ranks, blocks),
          binomial_broadcast(ranks, {7}, ranks - 1), binomial_reduce(ranks, {7}, ranks - 1)}) {
      const Schedule schedule = stretched(made, element_bytes);
      all_right(schedule, parts_of(schedule, 1), make_library_plan, 0);
      all_right(schedule, parts_of(schedule, 2), make_library_plan, 1);
    }
  }
  // A process that has no rank has no part, and waits for the others' runs all the same.
  const Schedule schedule = stretched(sharded_parameter_server(3, {6}, 1), element_bytes);
  all_right(schedule, parts_of(schedule, 1), make_library_plan, 0);
}

TEST_CASE("several runs of several processes: nobody begins one, or leaves, before all are there") {
  for (const Schedule& schedule : {ring(4, 11), stretched(kary_all_reduce(4, {8}, 0, 2, 3), element_bytes)})
    for (int i = 0; i < 10; ++i) all_right(schedule, parts_of(schedule, 1 + i % 2), make_nccl_plan, 2);
}

TEST_CASE("a process that plans another schedule is found out: its messages are of another length") {
  const Parts parts{{0}, {1}};
  const Schedule right = ring(2, 8), other = ring(2, 12);
  const auto make = [&](const Schedule& schedule, std::span<const Actor> mine) {
    Plan plan = make_nccl_plan(schedule, mine);
    if (mine[0] == 1)
      for (Command& command : plan.commands)
        if (command.what == Command::What::send) command.from.count = 3;  // of 4
    return plan;
  };
  const auto came = replay_together(right, parts, make, one_run(false, 2s), machines(parts, 0));
  for (const Came& one : came) {
    CHECK(one.said.find("a message of 3 elements met a receive of 4") != std::string::npos);
    CHECK(one.aborted);
    CHECK(one.nothing_held);
  }
}

TEST_CASE("a peer that never joins is given up in time") {
  const Schedule schedule = ring(2, 8);
  // Alone, with a plan for rank 0 of two.
  const auto begin = std::chrono::steady_clock::now();
  const Came came =
      ringsim::test::replay_alone(schedule, make_nccl_plan(schedule, std::array{0}), one_run(true, 100ms));
  CHECK(came.said ==
        "joining communicator 1 of 1: not finished within 100 ms\n  hint: check that all processes run and can reach "
        "each other; to wait longer, use --timeout");
  CHECK(came.aborted);
  CHECK(came.abandoned);
  CHECK(came.nothing_held);
  CHECK(std::chrono::steady_clock::now() - begin < 5s);
}

TEST_CASE("a peer whose GPU hangs, or that fails, ends all processes: some are notified, others find out in time") {
  const Schedule schedule = ring(3, 12);
  const Parts parts = parts_of(schedule, 1);
  for (const bool graph : {false, true}) {
    for (const bool told : {false, true}) {
      for (const bool stalls : {false, true}) {
        CAPTURE(graph);
        CAPTURE(told);
        CAPTURE(stalls);
        std::vector<Machine> all = machines(parts, 7);
        for (Machine& machine : all) machine.nccl.notices_peers = told;
        all[1].trouble = stalls ? Machine::Trouble::gpu_stalls : Machine::Trouble::nccl_fails;
        const auto begin = std::chrono::steady_clock::now();
        const auto came = replay_together(schedule, parts, make_nccl_plan, one_run(graph, 300ms), all);
        CHECK(std::chrono::steady_clock::now() - begin < 10s);
        for (std::size_t p = 0; p < came.size(); ++p) {
          CAPTURE(p);
          CHECK(came[p].said.starts_with("run 1 of 1: "));
          const bool fails = !stalls && p == 1;
          CHECK((came[p].said.find("the fake NCCL was set to fail") != std::string::npos) == fails);
          // Those that are not notified, and one whose GPU hangs, find out by the clock.
          if (!told && !fails)
            CHECK(came[p].said ==
                  "run 1 of 1: the GPU, or a peer that it waits for, did not finish within 300 ms\n  hint: to wait "
                  "longer, use --timeout");
          if (told && !stalls && !fails)
            CHECK(came[p].said.find(": a peer has given up\n  hint: ") != std::string::npos);
          CHECK(came[p].aborted);
          CHECK(came[p].nothing_held);
          CHECK(came[p].abandoned == (stalls && p == 1));  // the others' GPUs come back when kernels are ended
        }
      }
    }
  }
}

TEST_CASE("whichever call of one process fails, all end, each with a reason, and nothing is held") {
  const Schedule schedule = ring(3, 12);
  const Parts parts{{0}, {1, 2}};
  for (const bool of_nccl : {false, true}) {
    for (const bool graph : {false, true}) {
      int failed = 0;
      for (int call = 0; call < 120; ++call) {
        CAPTURE(of_nccl);
        CAPTURE(graph);
        CAPTURE(call);
        std::vector<Machine> all = machines(parts, static_cast<std::uint64_t>(call));
        if (of_nccl)
          all[1].nccl.fails_at = call;
        else
          all[1].device.fails_at = call;
        const auto came = replay_together(schedule, parts, make_nccl_plan, one_run(graph, 20s), all);
        // How often a process asks is a matter of time: the last calls may never come.
        const bool came_to_it = came[1].said != "right";
        failed += came_to_it ? 1 : 0;
        if (came_to_it)
          CHECK(came[1].said.find(of_nccl ? "NCCL was set to fail" : "GPU was set to fail") != std::string::npos);
        if (came_to_it) CHECK(came[0].said != "right");
        for (const Came& one : came) {
          CHECK(one.nothing_held);
          CHECK(one.aborted == came_to_it);
        }
      }
      CHECK(failed >= 40);
    }
  }
}

}  // namespace nccl_processes_test
