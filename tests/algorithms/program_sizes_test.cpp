// How large programs of training steps are, said before anything of them is made.
#include "algorithms/training/program_sizes.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <optional>
#include <vector>

#include "algorithms/catalog.hpp"
#include "algorithms/training/data_parallel.hpp"
#include "algorithms/training/local_sgd.hpp"
#include "algorithms/training/model_parallel.hpp"
#include "algorithms/training/server.hpp"
#include "sim/program/lower.hpp"
#include "tests/support/draw.hpp"

namespace program_sizes_test {

using namespace ringsim;
using namespace ringsim::test;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

CheckedSchedule schedule(const char* algorithm, CollectiveOp op, int ranks, Bytes bytes, Actor root = 0) {
  CollectiveRequest request{.op = op, .ranks = ranks};
  request.bytes = bytes;
  request.root = root;
  return check(make_schedule(*find_algorithm(algorithm), request, {}));
}

TrainingStep random_step(Draw& draw) {
  TrainingStep step{.name = "random", .layers = {}, .update = 1us};
  const auto layers = draw.number(1, 6);
  for (int l = 0; l < layers; ++l) {
    LayerCost layer{.name = fmt::format("l{}", l), .tensors = {}, .forward = 1us, .backward = 2us};
    for (auto t = draw.number(1, 3); t > 0; --t) layer.tensors.push_back(draw.number(100, 900));
    step.layers.push_back(layer);
  }
  if (draw.once_in(2)) step.host_launch = 1us;
  return step;
}

Bytes all_of(const TrainingStep& step) {
  Bytes all;
  for (const LayerCost& layer : step.layers)
    for (const std::int64_t tensor : layer.tensors) all += Bytes{4 * tensor};
  return all;
}

/// All counts but those of connections, which no program tells, and of the largest role, which is a mean. `cuts`: so
/// many borders between shards may each lie between two tensors, where none is cut.
void expect_size(const ProgramSize& said, const Program& program, std::int64_t cuts = 0) {
  const ProgramSize made = size_of(program);
  CHECK(said.actors == made.actors);
  CHECK(said.streams == made.streams);
  CHECK(said.tasks == made.tasks);
  CHECK(said.calls == made.calls);
  CHECK(said.members == made.members);
  CHECK(said.variables - made.variables <= 2 * cuts);
  CHECK(said.variables >= made.variables);
  CHECK(said.touches >= made.touches);
  CHECK(said.touches - made.touches <= 12 * cuts);
  CHECK(said.looks >= made.looks);
  if (cuts == 0) CHECK(said.looks == made.looks);
}

}  // namespace

TEST_CASE(
    "the size of every regime's program is known before it is made: tasks, calls, variables and what touches them") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    Draw draw(seed);
    TrainingStep step = random_step(draw);
    const auto ranks = static_cast<int>(draw.number(2, 5));
    const auto every = static_cast<int>(draw.number(1, 3));
    const Bytes all = all_of(step);
    CAPTURE(ranks);
    CAPTURE(every);
    for (const bool exchanges : {true, false}) {
      CAPTURE(exchanges);
      const int n = exchanges ? ranks : 1;
      const auto maybe = [&](const char* algorithm, CollectiveOp op) {
        return exchanges ? std::optional(schedule(algorithm, op, n, all)) : std::nullopt;
      };
      expect_size(local_sgd_program_size(step, every, n, 0, exchanges),
                  local_sgd_program(step, every, maybe("ring", CollectiveOp::all_reduce)));
      const Gossip gossip{.every = every, .overlap = draw.once_in(2)};
      expect_size(gossip_program_size(step, gossip, n, exchanges),
                  gossip_program(step, gossip, maybe("direct", CollectiveOp::send_recv)));
      std::optional<MasterExchange> master;
      if (exchanges)
        master = MasterExchange{.batch = schedule("direct", CollectiveOp::scatter, n, 80_B),
                                .model = schedule("direct", CollectiveOp::broadcast, n, all),
                                .outputs = schedule("direct", CollectiveOp::gather, n, 80_B),
                                .loss = schedule("direct", CollectiveOp::scatter, n, 80_B),
                                .gradients = schedule("direct", CollectiveOp::reduce, n, all)};
      expect_size(data_parallel_program_size(step, n, exchanges), data_parallel_program(step, n, 1us, master));
    }
    // Pipelines: as many ranks as layers, at most.
    const int stages = std::min(ranks, static_cast<int>(step.layers.size()));
    Pipeline pipeline{.ranks = stages, .microbatches = every};
    if (stages > 1) pipeline.transfer = schedule("direct", CollectiveOp::broadcast, 2, 80_B);
    expect_size(model_parallel_program_size(step, stages, every, stages > 1), model_parallel_program(step, pipeline));
    // Servers: a master among the ranks, or separate ones.
    const auto servers = static_cast<int>(draw.number(0, 3));
    const bool hands_out = draw.once_in(2);
    CAPTURE(servers);
    ServerExchange exchange{.push = {}, .pull = {}, .samples = {}, .servers = servers};
    const int members = ranks + (servers > 0 ? 1 : 0), root = servers > 0 ? ranks : 0;
    for (int shard = 0; shard < std::max(1, servers); ++shard) {
      exchange.push.push_back(schedule("direct", CollectiveOp::reduce, members, all, root));
      exchange.pull.push_back(schedule("direct", CollectiveOp::broadcast, members, all, root));
      if (hands_out) exchange.samples.push_back(schedule("direct", CollectiveOp::scatter, members, 80_B, root));
    }
    expect_size(server_program_size(step, ranks, servers, hands_out), parameter_server_program(step, ranks, exchange),
                std::max(0, servers - 1));
    AsyncServer async{.workers = ranks, .servers = std::max(1, servers), .updates = 5, .model = all, .offsets = {}};
    async.every = every;
    async.offsets.resize(static_cast<std::size_t>(ranks));
    if (servers == 0) async.master = 1;
    expect_size(async_program_size(step, async), async_server_program(step, async, {}));
    // Buckets, with hooks and cycles.
    if (draw.once_in(2)) step.hook = 1us;
    if (draw.once_in(2)) step.cycle = 3us;
    step.buckets = step.cycle.count() > 0 ? horovod_buckets(step.layers, 4, 2_KiB, step.cycle, {})
                                          : pytorch_buckets(step.layers, 4, 1_KiB, 2_KiB);
    for (const Bucket& bucket : step.buckets)
      step.schedules.push_back(schedule("parameter_server", CollectiveOp::all_reduce, ranks, bucket.bytes));
    const int actors = step.schedules.front().schedule().actors;
    expect_size(training_program_size(step, ranks, actors - ranks), training_program(step));
  }
}

// One that is stopped at once, at every place that looks: writers, proof, lowering.
TEST_CASE("a program that is being written, proved or lowered can be stopped") {
  TrainingStep step{.name = "many", .layers = {}, .update = 1us};
  for (int l = 0; l < 20'000; ++l)
    step.layers.push_back({.name = "l", .tensors = {10}, .forward = 1us, .backward = 1us});
  std::atomic<bool> stop{false};
  const auto watched = [&] { return WatchedWork({.stop = &stop}, "a test ran", 1); };
  const auto average = schedule("ring", CollectiveOp::all_reduce, 4, 800'000_B);
  const Program program = local_sgd_program(step, 2, average);
  WatchedWork going = watched();
  const CheckedProgram checked = check(program, &going);
  CHECK_NOTHROW(LoweredProgram(checked, all_channels, &going));
  stop = true;
  WatchedWork writing = watched(), proving = watched(), lowering = watched();
  CHECK_THROWS_WITH_AS(local_sgd_program(step, 2, average, &writing), "stopped while a test ran", Interrupted);
  CHECK_THROWS_AS(check(program, &proving), Interrupted);
  CHECK_THROWS_AS(LoweredProgram(checked, all_channels, &lowering), Interrupted);
}

// Each look says more, and never more than all.
TEST_CASE("progress of work grows up to 1, and its parts are those that were said beforehand") {
  TrainingStep step{.name = "many", .layers = {}, .update = 1us};
  for (int l = 0; l < 30'000; ++l)
    step.layers.push_back({.name = "l", .tensors = {10}, .forward = 1us, .backward = 1us});
  std::vector<double> shares;
  Watch watch{.progress = [&](double share) { shares.push_back(share); }};
  const ProgramSize size = local_sgd_program_size(step, 3, 4, 0, true);
  WatchedWork work(watch, "a test ran", size.parts());
  const auto average = schedule("ring", CollectiveOp::all_reduce, 4, 1'200'000_B);
  const LoweredProgram lowered(check(local_sgd_program(step, 3, average, &work), &work), all_channels, &work);
  REQUIRE(shares.size() > 20);
  for (std::size_t i = 1; i < shares.size(); ++i) CHECK(shares[i] >= shares[i - 1]);
  CHECK(shares.front() < 0.1);
  CHECK(shares.back() > 0.6);
  CHECK(shares.back() <= 1);
}

}  // namespace program_sizes_test
