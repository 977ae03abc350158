// Attention by a ring of context ranks: who computes what, the program, and the proof that all queries meet all blocks.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>

#include "algorithms/training/plan_program.hpp"
#include "algorithms/training/plan_ring.hpp"
#include "algorithms/training/ring_attention.hpp"
#include "sim/base/error.hpp"
#include "tests/support/command.hpp"
#include "tests/support/small_training.hpp"
#include "tests/support/verdict.hpp"
#include "validate/closed_forms/small_plan.hpp"

namespace training_ring_test {

using namespace ringsim;
using namespace ringsim::test;
using namespace ringsim::literals;

namespace {

constexpr auto one_f_one_b = PipelineSchedule::one_f_one_b;

enum class Again : std::uint8_t { nothing, core, all };

/// Each layer has a ring in either pass, of blocks of 2,400 B.
PlanSpec ring_plan(int tensor, int data, int context, const PipelineShape& shape, Again again = Again::nothing,
                   int layers = 2) {
  PlanSpec spec = small_plan(tensor, shape.stages, data, shape, layers);
  spec.grid = PlanGrid(tensor, shape.stages, data, "tp-cp-ep-dp-pp", context);
  // Chunks of unequal layers: one without attention, like an embedding.
  if (shape.chunks > 1) spec.layers[0][0].insert(spec.layers[0][0].begin(), spec.layers[0][0].front());
  for (auto& chunks : spec.layers)
    for (auto& all : chunks)
      for (PlanLayer& layer : all) {
        if (shape.chunks > 1 && &layer == spec.layers[0][0].data()) continue;
        add_small_ring(layer, context, 2'400_B, 3us, 5us, 1us);
        if (again == Again::all) layer.recompute = layer.forward;
        if (again != Again::core) continue;
        PlanLayer alone;
        add_small_ring(alone, context, 2'400_B, 3us, 5us, 1us);
        layer.recompute = {{.name = "keys"}};
        layer.recompute.insert(layer.recompute.end(), alone.forward.begin(), alone.forward.end());
      }
  return spec;
}

std::string changed(Program program, const std::function<void(Program&)>& change) {
  change(program);
  return verdict_of(std::move(program));
}

/// Hop 1, 2, ... of the first ring of that direction.
Program::Call& hop_of(Program& program, bool is_backward, int hop) {
  for (Program::Call& call : program.calls)
    if (call.name == (is_backward ? "context send_recv back" : "context send_recv") && --hop == 0) return call;
  throw std::runtime_error("no such hop");
}

Program::Touch& touch_of(Program::Task& task, Program::Touch::As how) {
  const auto found = std::find_if(task.touches.begin(), task.touches.end(),
                                  [&](const Program::Touch& touch) { return touch.as == how; });
  REQUIRE(found != task.touches.end());
  return *found;
}
void drop(Program::Task& task, Program::Touch::As how) { task.touches.erase(&touch_of(task, how)); }

/// The touch that reads the gradient that came home.
Program::Touch& gradient_read(const Program& program, Few<Program::Touch, 2>& touches) {
  const auto found = std::find_if(touches.begin(), touches.end(), [&](const Program::Touch& touch) {
    return touch.as == Program::Touch::As::read_whole && touch.variable == program.rings[0].gradients[0];
  });
  REQUIRE(found != touches.end());
  return *found;
}

}  // namespace

TEST_CASE("each chunk of queries meets each earlier chunk of keys once, in steps of equal work") {
  for (int n = 2; n <= 17; ++n) {
    CAPTURE(n);
    std::map<std::pair<int, int>, int> met;  // by query and key
    for (int rank = 0; rank < n; ++rank)
      for (int step = 0; step < n; ++step) {
        int halves = 0;
        for (const ChunkPair& pair : ring_step(n, rank, step)) {
          ++met[{pair.query, pair.key}];
          halves += pair.query == pair.key ? 1 : 2;
          const std::vector<int> own = chunks_of_rank(n, rank), other = chunks_of_rank(n, wrap(rank - step, n));
          CHECK(std::count(own.begin(), own.end(), pair.query) == 1);
          CHECK(std::count(other.begin(), other.end(), pair.key) == 1);
        }
        CHECK(halves == 4);
      }
    for (int query = 0; query < 2 * n; ++query)
      for (int key = 0; key < 2 * n; ++key) CHECK(met[{query, key}] == (key <= query ? 1 : 0));
  }
}

// Four ranks. Rank 2 meets the block of rank 1 with all queries and half of the keys, that of rank 3 with half of the
// queries and all keys.
TEST_CASE("a step of a ring is one of three kinds") {
  CHECK(ring_step(4, 2, 0) == std::vector<ChunkPair>{{2, 2}, {5, 2}, {5, 5}});
  CHECK(ring_step(4, 2, 1) == std::vector<ChunkPair>{{2, 1}, {5, 1}});
  CHECK(ring_step(4, 2, 3) == std::vector<ChunkPair>{{5, 3}, {5, 4}});
  CHECK(ring_step_parts(4, 2, 0).queries == 1);
  CHECK(ring_step_parts(4, 2, 0).keys == 1);
  CHECK(ring_step_parts(4, 2, 1).queries == 1);
  CHECK(ring_step_parts(4, 2, 1).keys == 0.5);
  CHECK(ring_step_parts(4, 2, 3).queries == 0.5);
  CHECK(ring_step_parts(4, 2, 3).keys == 1);
}

TEST_CASE("plans with rings are proved, whatever the shards, stages and recomputation") {
  int n = 0;
  for (const int t : {1, 2})
    for (const int c : {2, 3, 4})
      for (const PipelineShape shape : {PipelineShape{one_f_one_b, 1, 1, 2}, PipelineShape{one_f_one_b, 2, 1, 3},
                                        PipelineShape{PipelineSchedule::interleaved, 2, 2, 2},
                                        PipelineShape{PipelineSchedule::zero_bubble_h1, 2, 1, 3}})
        for (const PlanShard shard : {PlanShard::none, PlanShard::optimizer, PlanShard::full})
          for (const Again again : {Again::nothing, Again::core, Again::all}) {
            if (shape.splits_backward() && (shard == PlanShard::full || again == Again::all)) continue;
            PlanSpec spec = ring_plan(t, 2 * c, c, shape, again);
            spec.iterations = 2;
            spec.shard = shard;
            spec.reshards = shape.stages == 1;
            CAPTURE(c);
            CAPTURE(static_cast<int>(again));
            CAPTURE(to_string(shape.schedule));
            CHECK(verdict_of(small_plan_program(spec).program) == "accepted");
            ++n;
          }
  CHECK(n == 186);
}

// Each rank sends 2,400 B in c - 1 hops forward; backward as many with a block, and as many with a gradient.
TEST_CASE("keys and values go round once forward and backward, their gradients once, to the byte") {
  for (const int c : {2, 3, 4}) {
    CAPTURE(c);
    for (const Again again : {Again::nothing, Again::core}) {
      const PlanSpec spec = ring_plan(1, 2 * c, c, {one_f_one_b, 1, 1, 3}, again);
      const std::int64_t rounds = again == Again::nothing ? 3 : 4;
      const std::int64_t keys = 2LL * c * 2 * 3 * rounds * (c - 1) * 2'400, gradients = 2LL * (2 * c - 1) * 2'000 * 4;
      CHECK(run_on_star(small_plan_program(spec).program).timeline.bytes_sent.count == keys + gradients);
    }
  }
}

// The recurrence of Transformer Engine's loops: C_j, the end of hop j, and F_j, that of step j.
TEST_CASE("a ring takes the time of its recurrence, whatever steps and hops take") {
  std::mt19937 random(7);
  const auto some = [&](int most) { return Picoseconds{1'000 * std::uniform_int_distribution(0, most)(random)}; };
  for (int i = 0; i < 40; ++i) {
    CAPTURE(i);
    const int n = std::uniform_int_distribution(2, 7)(random);
    PlanSpec spec = small_plan(1, 1, n, {one_f_one_b, 1, 1, 1});
    spec.grid = PlanGrid(1, 1, n, "tp-cp-ep-dp-pp", n);
    PlanLayer& layer = spec.layers[0][0][0];
    const Bytes block{std::uniform_int_distribution(1, 100'000)(random)};
    add_small_ring(layer, n, block, 0us, 0us, 0us);
    for (std::vector<PlanKernel>* pass : {&layer.forward, &layer.backward})
      for (PlanKernel& kernel : *pass)
        if (!kernel.is_call()) kernel.time = some(10'000);
    const auto hop = [&](Bytes bytes) { return Picoseconds{2us} + Picoseconds{80} * bytes.count; };

    std::vector<Picoseconds> times;  // of the forward pass's kernels: the first, steps, the last
    for (const PlanKernel& kernel : layer.forward)
      if (!kernel.is_call()) times.push_back(kernel.time);
    std::vector<Picoseconds> step_ends, hop_ends{times.front()};
    for (int j = 0; j < n; ++j) {
      const auto end_of = [&](int step) {
        return step < 0 ? times.front() : step_ends[static_cast<std::size_t>(step)];
      };
      if (j > 0) hop_ends.push_back(std::max(hop_ends.back(), end_of(j - 3)) + hop(block));
      step_ends.push_back(std::max(end_of(j - 1), hop_ends.back()) + times[static_cast<std::size_t>(j) + 1]);
    }
    Picoseconds now = step_ends.back() + times.back();
    times.clear();
    for (const PlanKernel& kernel : layer.backward)
      if (!kernel.is_call()) times.push_back(kernel.time);
    now += times.front();
    for (int j = 0; j < n; ++j) {
      const Bytes bytes = j == 0 || j + 1 == n ? block : 2 * block;
      now +=
          std::max(times[static_cast<std::size_t>(2 * j) + 1], hop(bytes)) + times[static_cast<std::size_t>(2 * j) + 2];
    }
    now += times.back();
    Program program = small_plan_program(spec).program;
    Picoseconds gradients{0};  // 4,000 B around the ring of ranks, each part of its own size
    for (Program::Call& call : program.calls)
      if (call.name == "reduce bucket 0") gradients = run(star(n, port), call.schedule, {}).duration();
    CHECK(run_on_star(program).timeline.duration() == now + gradients);
  }
}

TEST_CASE("mutations of a plan with rings are refused by name") {
  const Program program = small_plan_program(ring_plan(1, 4, 4, {one_f_one_b, 1, 1, 2})).program;
  REQUIRE(verdict_of(program) == "accepted");
  using As = Program::Touch::As;

  // Forward. A hop that brings nothing.
  CHECK(changed(program, [](Program& p) { hop_of(p, false, 2).variables = hop_of(p, false, 2).into = {}; }) ==
        "context send_recv: rank 0 sends keys and values of the rank 2 before in the ring, which have not come to it "
        "in this pass");
  // A block is met twice, and so another one never.
  CHECK(changed(program,
                [](Program& p) {
                  touch_of(task_named(p, 0, "forward layers.0 core 2 of micro-batch 0"), As::read).variable =
                      p.rings[0].blocks[1];
                }) ==
        "rank 0, stream 0, task 3 (forward layers.0 core 2 of micro-batch 0) lets queries of rank 0 meet keys and "
        "values of rank 3 a second time");
  // A step is left out.
  CHECK(changed(program,
                [](Program& p) { drop(task_named(p, 0, "forward layers.1 core 3 of micro-batch 1"), As::read); }) ==
        "rank 0, stream 0, task 43 (forward layers.1 rest of micro-batch 1) reads a result of queries of rank 0 that "
        "have not met keys and values of rank 1");
  // A step begins before its block has come.
  CHECK(changed(program,
                [](Program& p) { task_named(p, 0, "forward layers.0 core 1 of micro-batch 0").after.clear(); }) ==
        "rank 0, stream 2, task 0 (context send_recv) and rank 0, stream 0, task 2 (forward layers.0 core 1 of "
        "micro-batch 0): both touch keys and values of the rank 1 before in the ring, one of them writes it, and "
        "nothing orders them");
  // A hop begins before the block that it hands on has been made.
  CHECK(changed(program, [](Program& p) { task_named(p, 0, "context send_recv").after.clear(); }) ==
        "rank 0, stream 2, task 0 (context send_recv) and rank 0, stream 0, task 0 (forward layers.0 of micro-batch "
        "0): both touch the rank's own keys and values, one of them writes it, and nothing orders them");
  // A ring of which a rank is left out.
  CHECK(changed(program,
                [](Program& p) {
                  hop_of(p, false, 1).members = {1, 0, 2, 3};
                }) ==
        "rank 0, stream 0, task 3 (forward layers.0 core 2 of micro-batch 0) lets queries of rank 1 meet keys and "
        "values of rank 1 a second time");
  // The result is read before the last step.
  CHECK(changed(program,
                [](Program& p) {
                  drop(task_named(p, 0, "forward layers.0 rest of micro-batch 0"), As::read_whole);
                  task_named(p, 0, "forward layers.0 core 2 of micro-batch 0")
                      .touches.push_back({As::read_whole, p.rings[0].blocks[0]});
                }) ==
        "rank 0, stream 0, task 3 (forward layers.0 core 2 of micro-batch 0) reads a result of queries of rank 0 that "
        "have not met keys and values of rank 1");
  // Nobody reads it.
  CHECK(changed(program,
                [](Program& p) { drop(task_named(p, 0, "forward layers.0 rest of micro-batch 0"), As::read_whole); }) ==
        "rank 0, stream 0, task 6 (forward layers.1 of micro-batch 0) begins a pass around the ring before rank 0 has "
        "read the result of the last one");

  // Backward. The pass begins with the rank's own block, not with the last that came: its gradient ends elsewhere.
  CHECK(changed(program,
                [](Program& p) {
                  for (auto& task : p.roles[0].streams[0])
                    for (Program::Touch& touch : task.touches)
                      if (touch.as == As::keep) touch.variable = p.rings[0].blocks[0];
                }) ==
        "rank 0, stream 0, task 21 (backward layers.1 rest of micro-batch 0) reads the gradient of the rank's own keys "
        "and values at rank 0, found that of rank 3's");
  // A block that was not kept.
  CHECK(changed(program,
                [](Program& p) { drop(task_named(p, 0, "forward layers.0 core 3 of micro-batch 0"), As::keep); }) ==
        "rank 0, stream 0, task 22 (backward layers.0 of micro-batch 0) takes keys and values of the rank 3 before in "
        "the ring from shelf 0 of rank 0, on which nothing is kept");
  // Blocks that go the wrong way.
  CHECK(changed(program,
                [](Program& p) {
                  hop_of(p, true, 1).members = {0, 1, 2, 3};
                }) ==
        "rank 0, stream 0, task 16 (backward layers.1 sum 2 of micro-batch 0) adds the gradient of keys and values of "
        "rank 0 to the gradient of keys and values of the rank 2 before in the ring, in which rank 0 has that of rank "
        "2's");
  // Two blocks on one shelf; one that nobody takes.
  CHECK(
      changed(program,
              [](Program& p) {
                touch_of(task_named(p, 0, "forward layers.1 core 3 of micro-batch 0"), As::keep).to =
                    touch_of(task_named(p, 0, "forward layers.0 core 3 of micro-batch 0"), As::keep).to;
              }) ==
      "rank 0, stream 0, task 10 (forward layers.1 core 3 of micro-batch 0) keeps a second block on shelf 0 of rank 0");
  CHECK(changed(program, [](Program& p) {
          task_named(p, 0, "forward layers.0 core 3 of micro-batch 0")
              .touches.push_back({As::keep, p.rings[0].blocks[3], 77});
        }) == "rank 0 keeps a block on shelf 77 and never takes it");
  // A kernel makes the block that a hop has to bring.
  CHECK(
      changed(program,
              [](Program& p) {
                touch_of(task_named(p, 0, "forward layers.0 of micro-batch 0"), As::make).variable =
                    p.rings[0].blocks[1];
              }) ==
      "rank 0, stream 0, task 0 (forward layers.0 of micro-batch 0) makes keys and values of the rank 1 before in the "
      "ring, which only a hop can bring");
  // A gradient without a rank's part; one with it twice.
  CHECK(changed(program,
                [](Program& p) { drop(task_named(p, 0, "backward layers.1 sum 1 of micro-batch 0"), As::add); }) ==
        "rank 0, stream 0, task 21 (backward layers.1 rest of micro-batch 0) reads the gradient of rank 0's keys and "
        "values, expected one part of each of 4 ranks, found all but the part of rank 1");
  CHECK(changed(program,
                [](Program& p) {
                  auto& touches = task_named(p, 0, "backward layers.1 sum 1 of micro-batch 0").touches;
                  const Program::Touch again = touches[0];
                  touches.push_back(again);
                }) ==
        "rank 0, stream 0, task 21 (backward layers.1 rest of micro-batch 0) reads the gradient of rank 0's keys and "
        "values, expected one part of each of 4 ranks, found the part of rank 1 twice");
  // No rank reads the gradient that came home: before the next pass, and of the last pass.
  CHECK(changed(program,
                [](Program& p) {
                  auto& touches = task_named(p, 0, "backward layers.1 rest of micro-batch 0").touches;
                  touches.erase(&gradient_read(p, touches));
                }) ==
        "rank 0, stream 0, task 22 (backward layers.0 of micro-batch 0) begins a pass around the ring before rank 0 "
        "has read the gradient of its keys and values of the last one");
  CHECK(changed(program, [](Program& p) {
          auto& touches = task_named(p, 0, "backward layers.0 rest of micro-batch 1").touches;
          touches.erase(&gradient_read(p, touches));
        }) == "rank 0 never reads the gradient of its keys and values, which a pass around the ring has begun");
  // A hop that leaves the gradient behind.
  CHECK(changed(program,
                [](Program& p) {
                  Program::Call& call = hop_of(p, true, 2);
                  call.variables = {call.variables[0]};
                  call.into = {call.into[0]};
                }) ==
        "rank 0, stream 0, task 16 (backward layers.1 sum 2 of micro-batch 0) adds the gradient of keys and values of "
        "rank 2 to the gradient of keys and values of the rank 2 before in the ring, in which rank 0 has none");
  // The last hop home is left out.
  CHECK(changed(program, [](Program& p) { hop_of(p, true, 4).variables = hop_of(p, true, 4).into = {}; }) ==
        "rank 0, stream 0, task 20 (backward layers.1 sum 0 of micro-batch 0) adds the gradient of keys and values of "
        "rank 0 to the gradient of the rank's own keys and values, in which rank 0 has none");
  // A sum before the gradient has come.
  CHECK(changed(program,
                [](Program& p) { task_named(p, 0, "backward layers.1 sum 0 of micro-batch 0").after.clear(); }) ==
        "rank 0, stream 2, task 9 (context send_recv back) and rank 0, stream 0, task 20 (backward layers.1 sum 0 of "
        "micro-batch 0): both touch the gradient of the rank's own keys and values, one of them writes it, and nothing "
        "orders them");
  // A collective cannot move a block.
  CHECK(changed(program, [](Program& p) {
          for (Program::Call& call : p.calls)
            if (call.name == "reduce bucket 0") call.variables.push_back(p.rings[0].blocks[0]);
        }) == "call reduce bucket 0 moves a variable of a ring by all_reduce");

  // A block hop into a gradient.
  CHECK(changed(program, [](Program& p) { hop_of(p, false, 1).into = {p.rings[0].gradients[1]}; }) ==
        "call context send_recv hands the rank's own keys and values on as the gradient of keys and values of the rank "
        "1 before in the ring, which is no block of that ring");
  // A gradient hop into a block.
  CHECK(changed(program,
                [](Program& p) {
                  Program::Call& call = hop_of(p, true, 2);
                  REQUIRE(call.into.size() == 2);
                  call.into = {call.into[0], p.rings[0].blocks[0]};
                }) ==
        "call context send_recv back hands the gradient of keys and values of the rank 3 before in the ring on as the "
        "rank's own keys and values, which is no gradient of that ring");
  // A hop into another ring.
  const auto add_ring = [](Program& p) {
    Program::Ring ring{.groups = p.rings[0].groups, .blocks = {}, .gradients = {}};
    for (std::vector<int>* variables : {&ring.blocks, &ring.gradients})
      for (std::size_t d = 0; d < p.rings[0].blocks.size(); ++d) {
        variables->push_back(static_cast<int>(p.variables.size()));
        p.variables.push_back(fmt::format("variable {} of another ring", variables->size() - 1));
      }
    p.rings.push_back(ring);
  };
  CHECK(changed(program, add_ring) == "accepted");
  CHECK(changed(program,
                [&](Program& p) {
                  add_ring(p);
                  hop_of(p, false, 1).into = {p.rings[1].blocks[1]};
                }) ==
        "call context send_recv hands the rank's own keys and values on as variable 1 of another ring, which is no "
        "block of that ring");
  // A variable of two rings, and twice in one.
  CHECK(changed(program, [&](Program& p) {
          add_ring(p);
          p.rings[1].blocks[1] = p.rings[0].blocks[1];
        }) == "keys and values of the rank 1 before in the ring: two places in rings, expected one");
  CHECK(changed(program, [](Program& p) { p.rings[0].gradients[2] = p.rings[0].blocks[2]; }) ==
        "keys and values of the rank 2 before in the ring: two places in rings, expected one");

  // A group of two stages, and a rank that is in two groups.
  const Program staged = small_plan_program(ring_plan(1, 2, 2, {one_f_one_b, 2, 1, 2})).program;
  const auto groups_of = [](Program& p) -> Program::Groups& {
    return p.groups[static_cast<std::size_t>(p.rings[0].groups)];
  };
  const auto refused = [&](const std::function<void(Program::Groups&)>& change) {
    try {
      return changed(staged, [&](Program& p) { change(groups_of(p)); });
    } catch (const InvariantError& error) {
      return std::string(error.what());
    }
  };
  CHECK(has(refused([](Program::Groups& groups) {
              REQUIRE(groups.size() == 2);
              std::swap(groups[0][1], groups[1][1]);
            }),
            "members of a ring have one role"));
  CHECK(has(refused([](Program::Groups& groups) { groups[0][1] = groups[0][0]; }),
            "a rank is in one group of a ring, once"));

  // Two rings of two ranks: a hop from one to the other.
  const Program two = small_plan_program(ring_plan(1, 4, 2, {one_f_one_b, 1, 1, 2})).program;
  REQUIRE(two.rings[0].blocks.size() == 2);
  CHECK(changed(two,
                [](Program& p) {
                  hop_of(p, false, 1).members = {0, 2, 1, 3};
                }) ==
        "rank 0, stream 0, task 2 (forward layers.0 core 1 of micro-batch 0) lets queries of rank 0 meet keys and "
        "values of rank 2, which is not in its group");
}

}  // namespace training_ring_test
