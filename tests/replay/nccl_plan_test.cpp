// Schedules planned as groups of sends and receives, and carried out by a fake NCCL, in random legal orders.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "algorithms/formats/msccl_import.hpp"
#include "algorithms/ring.hpp"
#include "algorithms/stored_schedule.hpp"
#include "sim/check/check.hpp"
#include "sim/schedule/collective.hpp"
#include "tests/support/every_algorithm.hpp"
#include "tests/support/files.hpp"
#include "tests/support/nccl_replay.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/written_schedule.hpp"
#include "validate/replay/gpu/gpu_replay.hpp"
#include "validate/replay/memory.hpp"

namespace nccl_plan_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace ringsim::replay;
using namespace ringsim::replay::gpu;
using namespace std::chrono_literals;
using ringsim::test::all_actors;
using ringsim::test::Came;
using ringsim::test::one_run;
using ringsim::test::replay_alone;
using What = ringsim::replay::gpu::Command::What;

namespace {

/// In one process, a GPU for each actor.
std::string outcome(const Schedule& schedule, const Plan& plan, bool graph, std::uint64_t seed,
                    std::chrono::milliseconds patience = 60s) {
  const Came came = replay_alone(schedule, plan, one_run(graph, patience), {.device = {.seed = seed}, .nccl = {}});
  CHECK(came.nothing_held);
  CHECK(came.aborted == (came.said.find("did not finish within") != std::string::npos));
  CHECK(came.expected == plan.abreast);
  return came.said;
}

std::int64_t count(const Plan& plan, What what) {
  return std::count_if(plan.commands.begin(), plan.commands.end(), [&](const Command& c) { return c.what == what; });
}

/// What the actor does, without the numbers of streams and events.
std::vector<std::string> doings(const Plan& plan, Actor actor) {
  const auto in_words = [](const Stretch& s) { return fmt::format("{} {} {} {}", s.actor, s.room, s.first, s.count); };
  std::vector<std::string> found;
  for (const Command& c : plan.commands) {
    if (c.what == What::record || c.what == What::wait || c.what == What::begin_group || c.what == What::end_group)
      continue;
    if (plan.stream_of[c.stream] != actor) continue;
    found.push_back(fmt::format("{} to {} from {} base {} communicator {} peer {}", static_cast<int>(c.what),
                                in_words(c.to), in_words(c.from), in_words(c.base), c.communicator, c.peer));
  }
  return found;
}

/// Each rank sends to the next: lane 0 sends, lane 1 receives.
Schedule crossing(int ranks) {
  WrittenSchedule t(send_recv(ranks, 16_B), ranks, 2, 1);
  t.like.layout = {Layout{}, Layout::near_equal(16_B, 1), Layout::near_equal(16_B, 1), Layout{}};
  for (Actor r = 0; r < ranks; ++r) {
    t.step(r, 0).send(wrap(r + 1, ranks), {Buffer::input, 0, 1});
    t.step(r, 1).receive(wrap(r - 1, ranks), {Buffer::output, 0, 1});
  }
  return t.schedule();
}

/// The actor's two groups, each of one message, in the other order.
void swap_groups(Plan& plan, Actor actor) {
  std::vector<std::ptrdiff_t> begins;
  for (std::size_t i = 0; i + 1 < plan.commands.size(); ++i)
    if (plan.commands[i].what == What::begin_group && plan.stream_of[plan.commands[i + 1].stream] == actor)
      begins.push_back(static_cast<std::ptrdiff_t>(i));
  REQUIRE(begins.size() == 2);
  const auto all = plan.commands.begin();
  REQUIRE((all + begins[1] - 1)->what == What::wait);  // for the beginning of all; it goes with its group
  std::rotate(all + begins[0], all + begins[1] - 1, all + begins[1] + 3);
}

}  // namespace

TEST_CASE("every algorithm comes out right to the bit by sends and receives on 2 to 9 ranks, in random orders") {
  for (int ranks = 2; ranks <= 9; ++ranks) {
    // Chunks of two sizes; and fewer elements than ranks, so that some messages are empty.
    for (const Bytes elements : {Bytes{2 * ranks + 3}, Bytes{ranks - 1}}) {
      for (const Schedule& made : every_algorithm(ranks, elements)) {
        const Schedule schedule = stretched(made, element_bytes);
        const Plan plan = make_nccl_plan(schedule, all_actors(schedule));
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

TEST_CASE("a step is one group at each rank, with a send and a receive; what comes in is added after it") {
  const int n = 5;
  const Schedule ring = stretched(ring_all_reduce(n, {10}), element_bytes);
  const Plan plan = make_nccl_plan(ring, all_actors(ring));
  CHECK(count(plan, What::begin_group) == 2 * n * (n - 1));  // 2(n-1) steps
  CHECK(count(plan, What::end_group) == 2 * n * (n - 1));
  CHECK(count(plan, What::send) == 2 * n * (n - 1));
  CHECK(count(plan, What::receive) == 2 * n * (n - 1));
  CHECK(count(plan, What::add) == n * (n - 1));  // in the first half of them
  CHECK(count(plan, What::copy) == 0);
  CHECK(plan.communicators == std::vector<int>{n});  // of one lane and one channel
  CHECK(plan.abreast == 1);
  CHECK(plan.stream_of.size() == 1 + n);  // the beginning and the end; one lane a rank
}

TEST_CASE("the plan of some actors is that of all of them without the others' part") {
  for (const Schedule& made : every_algorithm(6, {17})) {
    CAPTURE(made.algorithm);
    const Schedule schedule = stretched(made, element_bytes);
    const Plan all = make_nccl_plan(schedule, all_actors(schedule));
    std::vector<std::vector<Actor>> parts{{0, 1, 2}, {3}, {4, 5}};
    for (Actor helper = 6; helper < schedule.actors; ++helper) parts.push_back({helper});
    for (const std::vector<Actor>& mine : parts) {
      const Plan plan = make_nccl_plan(schedule, mine);
      CHECK(plan.mine == mine);
      CHECK(plan.communicators == all.communicators);
      CHECK(plan.abreast == all.abreast);
      CHECK(plan.stream_of[0] == mine[0]);
      for (const Actor actor : all_actors(schedule)) {
        const bool is_mine = std::find(mine.begin(), mine.end(), actor) != mine.end();
        CHECK(doings(plan, actor) == (is_mine ? doings(all, actor) : std::vector<std::string>{}));
        CHECK(plan.elements[static_cast<std::size_t>(actor)] ==
              (is_mine ? all.elements[static_cast<std::size_t>(actor)] : std::array<std::int64_t, n_rooms>{}));
      }
    }
  }
}

TEST_CASE(
    "where lanes cross an end is still one lane's: with fewer communicators two ranks would wait for each other") {
  // Of three ranks any two share a connection, so that each has a communicator of its own.
  const Schedule ring = crossing(3);
  const Plan of_ring = make_nccl_plan(ring, all_actors(ring));
  CHECK(of_ring.communicators.size() == 3);
  CHECK(of_ring.abreast == 2);  // each rank is in two of them
  std::map<std::pair<std::uint32_t, Actor>, std::set<What>> ends;
  for (const Command& c : of_ring.commands)
    if (c.what == What::send || c.what == What::receive)
      ends[{c.communicator, of_ring.stream_of[c.stream]}].insert(c.what);
  CHECK(ends.size() == 2 * 3);
  for (const auto& [end, whats] : ends) CHECK(whats.size() == 1);  // one lane sends, the other receives

  const Schedule schedule = crossing(2);
  Plan plan = make_nccl_plan(schedule, all_actors(schedule));
  CHECK(plan.communicators.size() == 2);
  for (std::uint64_t seed = 0; seed < 50; ++seed) CHECK(outcome(schedule, plan, seed % 2 == 1, seed) == "right");
  // One communicator for the sender's lane, as one might think: both send first, and neither receives.
  plan.communicators.resize(1);
  for (Command& command : plan.commands) command.communicator = 0;
  const std::string stalled =
      "run 1 of 1: the GPU, or a peer that it waits for, did not finish within 50 ms\n  hint: to wait longer, use "
      "--timeout";
  for (const bool graph : {false, true}) CHECK(outcome(schedule, plan, graph, 0, 50ms) == stalled);
  // There is an order in which it could do: one sends first, the other receives first.
  Plan in_order = plan;
  swap_groups(in_order, 1);
  for (std::uint64_t seed = 0; seed < 50; ++seed) CHECK(outcome(schedule, in_order, seed % 2 == 1, seed) == "right");
  swap_groups(in_order, 0);  // both receive first
  CHECK(outcome(schedule, in_order, false, 0, 50ms) == stalled);
}

TEST_CASE("the lanes of MSCCL's files cross, and they come out right to the bit as others do") {
  // What is published is there where the folder is; one of our own, whose lanes stay apart, always.
  std::vector<std::filesystem::path> files =
      ringsim::test::files_in(ringsim::test::source_dir() + "/../shared/data/msccl", ".xml");
  files.push_back(std::filesystem::path(ringsim::test::source_dir()) / "tests/data/schedules/chain-3.xml");
  for (const std::filesystem::path& file : files) {
    const auto stored =
        std::make_shared<const StoredSchedule>(import_msccl(ringsim::test::read_file(file), file.string()));
    const Schedule schedule = stretched(schedule_of(stored, even_size(*stored)), element_bytes);
    if (check(schedule).proof().slots_needed > 0) continue;  // no replay takes it
    CAPTURE(file.string());
    const Plan plan = make_nccl_plan(schedule, all_actors(schedule));
    for (const std::uint64_t seed : {0U, 1U}) CHECK(outcome(schedule, plan, seed == 1, seed) == "right");
  }
}

TEST_CASE("channels do not mix: two ranks may list their messages of two channels in two orders") {
  WrittenSchedule t(broadcast(2, 32_B, 0), 2, 1, 2);
  Step& sends = t.step(0);
  sends.send(1, chunk(0), 0);
  sends.send(1, chunk(1), 1);
  Step& receives = t.step(1);
  receives.receive(0, chunk(1), 1);
  receives.receive(0, chunk(0), 0);
  const Schedule schedule = t.schedule();
  Plan plan = make_nccl_plan(schedule, all_actors(schedule));
  CHECK(plan.communicators.size() == 2);
  CHECK(plan.abreast == 2);                    // in one step
  CHECK(count(plan, What::begin_group) == 2);  // a group a step, though of two communicators
  for (std::uint64_t seed = 0; seed < 20; ++seed) CHECK(outcome(schedule, plan, true, seed) == "right");
  // On one end the first send would meet the first receive.
  plan.communicators.resize(1);
  std::map<Actor, std::uint32_t> first;
  for (Command& command : plan.commands) {
    if (command.what != What::send && command.what != What::receive) continue;
    command.communicator = 0;
    command.stream = first.try_emplace(plan.stream_of[command.stream], command.stream).first->second;
  }
  CHECK(outcome(schedule, plan, false, 0).starts_with("rank 1: data[0], element 0: expected "));
}

TEST_CASE("what is added to may lie elsewhere than the sum") {
  WrittenSchedule t(all_reduce(2, 16_B), 2, 1, 1);
  t.like.layout = {Layout{}, Layout::near_equal(16_B, 1), Layout::near_equal(16_B, 1), Layout{}};
  t.like.collective.before = [](Actor rank, Buffer buffer, std::uint32_t) {
    return buffer == Buffer::input ? Content{Content::Who::one, rank, 0} : Content{};
  };
  t.like.collective.after = [](Actor, Buffer buffer, std::uint32_t) {
    return buffer == Buffer::output ? Content{Content::Who::all, -1, 0} : Content{};
  };
  const Region input{Buffer::input, 0, 1}, output{Buffer::output, 0, 1};
  for (const Actor r : {0, 1}) {
    Step& step = t.step(r);
    step.send(1 - r, input);
    step.receive_add(1 - r, input, output, 0);
  }
  const Schedule schedule = t.schedule();
  CHECK(outcome(schedule, make_nccl_plan(schedule, all_actors(schedule)), true, 0) == "right");
}

TEST_CASE("an addition that comes after the next send is seen") {
  const Schedule schedule = stretched(ring_all_reduce(3, {6}), element_bytes);
  const Plan plan = make_nccl_plan(schedule, all_actors(schedule));
  int additions = 0;
  for (std::size_t i = 0; i < plan.commands.size(); ++i) {
    if (plan.commands[i].what != What::add) continue;
    ++additions;
    Plan broken = plan;
    const auto add = broken.commands.begin() + static_cast<std::ptrdiff_t>(i);
    const auto next = std::find_if(add, broken.commands.end(),
                                   [&](const Command& c) { return c.what == What::send && c.stream == add->stream; });
    REQUIRE(next != broken.commands.end());
    const auto end =
        std::find_if(next, broken.commands.end(), [](const Command& c) { return c.what == What::end_group; });
    std::rotate(add, add + 1, end + 1);
    CHECK(outcome(schedule, broken, false, 0).find("expected") != std::string::npos);
  }
  CHECK(additions == 3 * 2);
}

TEST_CASE("lanes that wait for each other's steps do so on streams: without those waits numbers are wrong") {
  // A chain of three, two segments: one lane adds up toward rank 0, the other brings the sums back.
  const Schedule schedule = stretched(kary_all_reduce(3, {8}, 0, 1, 2), element_bytes);
  const Plan plan = make_nccl_plan(schedule, all_actors(schedule));
  int waits = 0;
  for (std::size_t i = 0; i < plan.commands.size(); ++i) {
    const Command& command = plan.commands[i];
    if (command.what != What::wait || command.stream == 0 || plan.event_on[command.event] == 0) continue;
    ++waits;
    Plan broken = plan;
    broken.commands.erase(broken.commands.begin() + static_cast<std::ptrdiff_t>(i));
    bool is_seen = false;
    for (std::uint64_t seed = 0; seed < 1000 && !is_seen; ++seed)
      is_seen = outcome(schedule, broken, false, seed) != "right";
    // What goes down waits until the sum is whole, at rank 0; elsewhere until what it overwrites has left, which the
    // order of messages happens to see to as well.
    CHECK(is_seen == (plan.stream_of[command.stream] == 0));
  }
  CHECK(waits == 3 * 2);  // a segment and a rank
}

TEST_CASE("what a step starts together runs together: what needs nobody does not wait for a message") {
  WrittenSchedule t(broadcast(2, 8_B, 0), 2, 1, 1);
  t.step(0).send(1, chunk(0));
  t.step(1).receive(0, chunk(0));
  t.step(0).compute(Picoseconds(7us));
  t.steps[0][0][0].compute(Picoseconds(7us));
  const Schedule schedule = t.schedule();
  const Plan plan = make_nccl_plan(schedule, all_actors(schedule));
  std::vector<std::uint32_t> computes;
  std::uint32_t sends = 0;
  for (const Command& command : plan.commands) {
    if (command.what == What::compute) computes.push_back(command.stream);
    if (command.what == What::send) sends = command.stream;
  }
  REQUIRE(computes.size() == 2);
  CHECK(computes[0] != sends);
  CHECK(computes[1] == sends);  // of the next step
  CHECK(outcome(schedule, plan, true, 0) == "right");
}

TEST_CASE(
    "a barrier's messages are of no elements, and are waited for all the same, though NCCL would not wait for "
    "nothing") {
  const Schedule schedule = dissemination_barrier(4);
  Plan plan = make_nccl_plan(schedule, all_actors(schedule));
  CHECK(count(plan, What::send) == 4 * 2);  // ranks, rounds
  for (const Command& command : plan.commands) CHECK(command.from.count + command.to.count == 0);
  CHECK(outcome(schedule, plan, true, 0) == "right");
  // One more that nobody sends holds all up.
  const auto receive = std::find_if(plan.commands.begin(), plan.commands.end(),
                                    [](const Command& c) { return c.what == What::receive; });
  plan.commands.insert(receive, Command(*receive));
  CHECK(outcome(schedule, plan, true, 0, 50ms).find("did not finish within") != std::string::npos);
}

}  // namespace nccl_plan_test
