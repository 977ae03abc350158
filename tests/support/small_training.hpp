// Small training programs, run on a star.
#pragma once

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include "algorithms/catalog.hpp"
#include "algorithms/training/ddp.hpp"
#include "sim/program/account.hpp"
#include "sim/program/lower.hpp"
#include "tests/support/tiny.hpp"

namespace ringsim::test {

using namespace ringsim::literals;
using namespace std::chrono_literals;

/// Of the star on which they run: a path has 12.5 GB/s and 2 us.
inline const LinkSpec port{.bandwidth = 100_Gbps, .latency = 1us};

inline CheckedSchedule direct(CollectiveOp op, int ranks, Bytes bytes, Actor root = 0) {
  CollectiveRequest request{.op = op, .ranks = ranks};
  request.bytes = bytes;
  request.root = root;
  return check(make_schedule(*find_algorithm("direct"), request, {}));
}

/// Three layers, 7,000,000 elements; 12 ms of both passes.
inline TrainingStep three_layers() {
  TrainingStep step{.name = "three", .layers = {}, .update = 700us};
  step.layers = {{.name = "a", .tensors = {1'000'000, 17}, .forward = 1ms, .backward = 2ms},
                 {.name = "b", .tensors = {4'000'000}, .forward = 2ms, .backward = 4ms},
                 {.name = "c", .tensors = {1'999'983}, .forward = 1ms, .backward = 2ms}};
  step.steps = 3;
  return step;
}

struct Ran {
  std::vector<RankAccount> ranks, servers;
  Timeline timeline;
};

/// Runs it on a star with a port for every actor; the last iteration counts.
inline Ran run_on_star(const Program& program) {
  const LoweredProgram lowered(check(program));
  Accounts accounts(lowered, program.iterations - 1);
  RunOptions options;
  options.on_compute = [&](const ComputeEvent& event) { accounts.on_compute(event); };
  Ran ran;
  ran.timeline = run(star(program.ranks, port, program.actors - program.ranks), lowered.schedule(), options);
  ran.ranks = accounts.ranks();
  for (Actor actor = program.ranks; actor < program.actors; ++actor) ran.servers.push_back(accounts.of(actor));
  return ran;
}

/// The first task of that name; there must be one.
inline Program::Task& task_named(Program& program, std::size_t role, const std::string& name) {
  for (auto& stream : program.roles[role].streams)
    for (Program::Task& task : stream)
      if (program.name_of(task) == name) return task;
  throw std::runtime_error("no task " + name);
}

}  // namespace ringsim::test
