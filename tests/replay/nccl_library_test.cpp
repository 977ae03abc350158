// The library's own collectives in place of a schedule, and when they cannot be.
#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

#include "algorithms/all_to_all.hpp"
#include "algorithms/composed/buffers.hpp"
#include "algorithms/direct.hpp"
#include "algorithms/exchanges/dissemination.hpp"
#include "algorithms/parameter_server.hpp"
#include "algorithms/ring.hpp"
#include "algorithms/trees/binomial_tree.hpp"
#include "sim/base/error.hpp"
#include "sim/schedule/collective.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/nccl_replay.hpp"
#include "tests/support/written_schedule.hpp"
#include "validate/replay/memory.hpp"

namespace nccl_library_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace ringsim::replay;
using namespace ringsim::replay::gpu;
using namespace std::chrono_literals;
using ringsim::test::all_actors;
using ringsim::test::Came;
using ringsim::test::complaint;
using ringsim::test::one_run;
using ringsim::test::replay_alone;
using What = ringsim::replay::gpu::Command::What;

namespace {

Schedule elements(const Schedule& schedule) { return stretched(schedule, element_bytes); }

std::string refused(const Schedule& schedule) {
  return complaint([&] { make_library_plan(schedule, all_actors(schedule)); });
}

}  // namespace

TEST_CASE("the library's collectives come out right to the bit on 1 to 9 ranks, in place and out of place") {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    const Bytes blocks{std::int64_t{6} * ranks};
    std::vector<Schedule> all{ring_all_reduce(ranks, {2 * ranks + 3}),
                              ring_reduce_scatter(ranks, blocks),
                              ring_all_gather(ranks, blocks),
                              binomial_broadcast(ranks, {7}, ranks / 2),
                              binomial_reduce(ranks, {7}, ranks / 2),
                              in_pieces(ring_all_gather(ranks, blocks), {.slices = 3}),
                              in_pieces(ring_reduce_scatter(ranks, blocks), {.slices = 3})};
    for (std::size_t i = 0, n = all.size(); i < n; ++i) all.push_back(out_of_place(all[i]));
    for (const Schedule& made : all) {
      const Schedule schedule = elements(made);
      const Plan plan = make_library_plan(schedule, all_actors(schedule));
      CHECK(plan.communicators == std::vector<int>{ranks});
      for (const std::uint64_t seed : {0U, 1U, 2U, 3U}) {
        CAPTURE(ranks);
        CAPTURE(schedule.algorithm);
        CAPTURE(to_string(schedule.collective.op));
        CAPTURE(seed);
        const Came came = replay_alone(schedule, plan, one_run(seed % 2 == 1), {.device = {.seed = seed}, .nccl = {}});
        CHECK(came.said == "right");
        CHECK(came.nothing_held);
        CHECK(came.kernels == 2 * ranks);  // the rehearsal; and the run, or the graph
      }
    }
  }
}

TEST_CASE("a buffer may have room for a rank's own block alone, as MSCCL has it") {
  const int ranks = 4, block = 3 * element_bytes, total = ranks * block;
  const auto own = [](const Content& content, Actor rank) {
    return Content{content.who, content.who == Content::Who::one ? rank : -1, static_cast<std::uint32_t>(rank)};
  };
  Schedule gather = WrittenSchedule(all_gather(ranks, {total}), ranks, 1, ranks).schedule();
  gather.layout = {Layout{}, Layout::near_equal({block}, 1), Layout::near_equal({total}, ranks), Layout{}};
  gather.collective.before = [own](Actor rank, Buffer buffer, std::uint32_t) {
    return buffer == Buffer::input ? own({Content::Who::one, 0, 0}, rank) : Content{};
  };
  gather.collective.after = [](Actor, Buffer buffer, std::uint32_t chunk) {
    return buffer == Buffer::output ? Content{Content::Who::one, static_cast<Actor>(chunk), chunk} : Content{};
  };
  Schedule scatter = WrittenSchedule(reduce_scatter(ranks, {total}), ranks, 1, ranks).schedule();
  scatter.layout = {Layout{}, Layout::near_equal({total}, ranks), Layout::near_equal({block}, 1), Layout{}};
  scatter.collective.before = [](Actor rank, Buffer buffer, std::uint32_t chunk) {
    return buffer == Buffer::input ? Content{Content::Who::one, rank, chunk} : Content{};
  };
  scatter.collective.after = [own](Actor rank, Buffer buffer, std::uint32_t) {
    return buffer == Buffer::output ? own({Content::Who::all, -1, 0}, rank) : Content{};
  };
  for (const Schedule& schedule : {gather, scatter})
    CHECK(replay_alone(schedule, make_library_plan(schedule, all_actors(schedule)), one_run(true)).said == "right");
}

TEST_CASE("the library's collective is of the ranks: a parameter server's helpers have no part in it") {
  const Schedule schedule = elements(sharded_parameter_server(3, {6}, 2));
  REQUIRE(schedule.actors == 5);
  const Plan plan = make_library_plan(schedule, all_actors(schedule));
  CHECK(plan.communicators == std::vector<int>{3});
  CHECK(replay_alone(schedule, plan, one_run(true)).said == "right");
  // Nor has a process that has helpers alone.
  CHECK(make_library_plan(schedule, std::array{3, 4}).commands.empty());
}

TEST_CASE("a wrong root or a wrong place of the library's collective is seen as wrong numbers") {
  const Schedule schedule = elements(binomial_broadcast(3, {7}, 1));
  Plan plan = make_library_plan(schedule, all_actors(schedule));
  for (Command& command : plan.commands)
    if (command.what == What::collective) command.peer = 2;
  CHECK(replay_alone(schedule, plan, one_run(false)).said.starts_with("rank 0: data[0], element 0: expected "));
}

TEST_CASE("what the library has no collective for is refused with what it has") {
  const std::string ops =
      "expected an operation that NCCL has (all_reduce, reduce_scatter, all_gather, broadcast or reduce), found ";
  const std::string hint = "\n  hint: to replay its schedule, remove --library";
  CHECK(refused(elements(direct_all_to_all(4, {8}))) == ops + "all_to_all" + hint);
  CHECK(refused(elements(direct_send_recv(4, {8}))) == ops + "send_recv" + hint);
  CHECK(refused(elements(direct_scatter(4, {8}, 0))) == ops + "scatter" + hint);
  CHECK(refused(dissemination_barrier(4)) == ops + "barrier" + hint);
  CHECK(refused(elements(ring_reduce_scatter(3, {17}))) ==
        "expected the same number of elements for each rank, as in NCCL's reduce_scatter; found 17 for 3 ranks\n  "
        "hint: a multiple of 12 bytes");
  CHECK(refused(elements(ring_all_gather(3, {17}))) ==
        "expected the same number of elements for each rank, as in NCCL's all_gather; found 17 for 3 ranks\n  hint: a "
        "multiple of 12 bytes");
  CHECK(refused(elements(ring_all_reduce(3, {17}))).empty());
}

TEST_CASE("buffers that are laid out otherwise than the library's are refused, each rank's") {
  const std::string hint = "\n  hint: to replay its schedule, remove --library";
  // Blocks the other way round: rank 0 has the last.
  Schedule gather = elements(ring_all_gather(3, {6}));
  gather.collective.before = [](Actor rank, Buffer buffer, std::uint32_t chunk) {
    const bool own = buffer == Buffer::data && static_cast<Actor>(chunk) == 2 - rank;
    return own ? Content{Content::Who::one, rank, chunk} : Content{};
  };
  CHECK(refused(gather) ==
        "expected the buffer layout of NCCL's all_gather: element i of rank r's block is element i of block r of all "
        "results; found another layout on rank 0" +
            hint);
  // A rank's result begins with another chunk of the sum.
  Schedule reduced = elements(ring_all_reduce(2, {6}));
  reduced.collective.after = [](Actor, Buffer buffer, std::uint32_t chunk) {
    return buffer == Buffer::data ? Content{Content::Who::all, -1, 1 - chunk} : Content{};
  };
  CHECK(refused(reduced) ==
        "expected the buffer layout of NCCL's all_reduce: element i of one buffer is, or is added to, element i of the "
        "other; found another layout on rank 0" +
            hint);
  // Chunks that are not blocks: four of them for two ranks, of 1, 2, 2 and 1 elements, so that the blocks are of 3
  // each: fine; of 2, 2, 1 and 1 one lies in both blocks.
  for (const bool fits : {true, false}) {
    Schedule scatter = elements(ring_reduce_scatter(2, {6}));
    scatter.layout[0] = fits ? Layout::of_sizes({4_B, 8_B, 8_B, 4_B}) : Layout::of_sizes({8_B, 8_B, 4_B, 4_B});
    scatter.collective = reduce_scatter_in_pieces(2, 24_B, 2);
    CHECK(refused(scatter).empty() == fits);
  }
}

}  // namespace nccl_library_test
