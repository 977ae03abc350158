// Schedules made of schedules: groups, chunk maps, waits, and the algorithms made of them.
#include "algorithms/composed/compose.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "algorithms/catalog.hpp"
#include "sim/base/error.hpp"
#include "sim/check/check.hpp"
#include "sim/run/run.hpp"
#include "sim/schedule/collective.hpp"
#include "tests/support/every_algorithm.hpp"
#include "tests/support/naive/interpreter.hpp"
#include "tests/support/tiny.hpp"
#include "tests/support/verdict.hpp"

namespace compose_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {

const Digit node_of_4{.size = 4, .stride = 1}, rail_of_3{.size = 3, .stride = 4};

struct Sent {
  int steps = 0;
  Bytes bytes;
  std::set<Actor> to;
};
Sent sent(const Schedule& schedule, Actor actor, Lane lane) {
  Sent found;
  found.steps = schedule.n_steps(actor, lane);
  for (int i = 0; i < found.steps; ++i) {
    Step step;
    schedule.step(actor, lane, i, step);
    for (const Op& op : step.ops) {
      if (op.what != Do::send) continue;
      found.bytes += schedule.size(op.region);
      found.to.insert(op.peer);
    }
  }
  return found;
}

Picoseconds on_star(const Schedule& schedule) {
  return run(star(schedule.collective.ranks, {.bandwidth = 10_GBps, .latency = 1'000'000_ps}), check(schedule))
      .duration();
}

std::string refusal(const char* name, const CollectiveRequest& request, const Arguments& arguments) {
  try {
    find_algorithm(name)->make(request, arguments);
    return "accepted";
  } catch (const InputError& error) {
    return error.message();
  }
}

}  // namespace

TEST_CASE("a digit names the groups: runs of ranks, ranks apart, and either backwards") {
  // 12 ranks as 3 nodes of 4: rank 6 is member 2 of node 1 and member 1 of its rail {2, 6, 10}.
  CHECK(node_of_4.of(6) == 2);
  CHECK(node_of_4.with(6, 0) == 4);
  CHECK(rail_of_3.of(6) == 1);
  CHECK(rail_of_3.with(6, 0) == 2);
  CHECK(rail_of_3.with(6, 2) == 10);
  const Digit backwards{.size = 4, .stride = 1, .reversed = true};
  for (Actor r = 0; r < 12; ++r) {
    CHECK(backwards.with(r, backwards.of(r)) == r);
    const Actor next = backwards.with(r, wrap(backwards.of(r) + 1, 4));
    CHECK(node_of_4.of(next) == wrap(node_of_4.of(r) - 1, 4));
    CHECK(next / 4 == r / 4);
  }
}

TEST_CASE("parts of one lane run one after the other, with chunks and peers numbered as in the whole") {
  const Schedule s = in_sequence(
      all_reduce(12, 1200_B), 12,
      {{.schedule = ring_reduce_scatter(4, {}), .digit = node_of_4, .scale = 3},
       {.schedule = ring_all_reduce(3, {}), .digit = rail_of_3, .first_chunk = [](Actor r) { return r % 4 * 3; }},
       {.schedule = ring_all_gather(4, {}), .digit = node_of_4, .scale = 3}});
  CHECK(verdict(s) == "accepted");
  CHECK(s.lanes == 1);
  for (Actor r = 0; r < 12; ++r) CHECK(s.n_steps(r, 0) == 3 + 4 + 3);
  Step first, middle;
  s.step(6, 0, 0, first);
  CHECK(first.ops[0].peer == 7);
  CHECK(first.ops[0].region == chunks(3, 3));  // chunk 1 of the part: member 2 sends the one before its own
  s.step(6, 0, 3, middle);
  CHECK(middle.ops[0].peer == 10);
  CHECK(middle.ops[0].region == chunk(6 + 1));  // the rail's stretch begins at 2 * 3, its member 1 sends chunk 1
  for (std::uint64_t seed = 1; seed <= 5; ++seed) CHECK(interpret(s, seed) == Outcome::right);
}

TEST_CASE("a part waits, at each rank, for all lanes of the parts that it comes behind, and for no others") {
  // Two lanes reduce and scatter, each its half of the buffer; then one part of two lanes gathers both halves.
  const auto half = [](int lane) { return [lane](Actor) { return lane * 4; }; };
  Schedule both = ring_all_gather(4, {});  // lane 1 does the same to the upper half
  both.lanes = 2;
  both.layout[0] = Layout::near_equal({}, 8);
  both.step = [one = both.step](Actor r, Lane lane, int i, Step& out) {
    one(r, lane, i, out);
    for (Op& op : out.ops)
      op.region.first += static_cast<std::uint32_t>(4 * lane), op.channel = static_cast<std::uint16_t>(lane);
  };
  const Digit all{.size = 4, .stride = 1};
  const Schedule s =
      in_sequence(all_reduce(4, 800_B), 8,
                  {{.schedule = ring_reduce_scatter(4, {}), .digit = all, .first_chunk = half(0), .lane = 0},
                   {.schedule = ring_reduce_scatter(4, {}), .digit = all, .first_chunk = half(1), .lane = 1},
                   {.schedule = both, .digit = all}});
  CHECK(s.lanes == 2);
  CHECK(verdict(s) == "accepted");
  for (const Lane lane : {0, 1}) {
    CHECK(s.n_steps(2, lane) == 6);
    Step parallel, behind, later;
    s.step(2, lane, 0, parallel);
    CHECK(parallel.waits.empty());
    CHECK(parallel.ops[0].channel == lane);
    s.step(2, lane, 3, behind);
    REQUIRE(behind.waits.size() == 1);
    CHECK(behind.waits[0].lane == 1 - lane);
    CHECK(behind.waits[0].steps == 3);
    s.step(2, lane, 4, later);
    CHECK(later.waits.empty());
  }
}

TEST_CASE("the waits of a part are counted from where it begins") {
  // in_switch of one rank's own: lane 1 waits for lane 0. Behind a part of 3 steps the wait is for 3 more.
  Schedule waiting = ring_all_gather(4, {});
  waiting.lanes = 2;
  waiting.n_steps = [](Actor, Lane lane) { return lane == 0 ? 3 : 1; };
  waiting.step = [gather = ring_all_gather(4, {}).step](Actor r, Lane lane, int i, Step& out) {
    if (lane == 0) return gather(r, 0, i, out);
    out.wait(0, 2);
    out.compute(1_ps);
  };
  const Digit all{.size = 4, .stride = 1};
  const Schedule s =
      in_sequence(all_reduce(4, 400_B), 4,
                  {{.schedule = ring_reduce_scatter(4, {}), .digit = all}, {.schedule = waiting, .digit = all}});
  CHECK(verdict(s) == "accepted");
  Step step;
  s.step(1, 1, 0, step);
  REQUIRE(step.waits.size() == 2);  // its own, and for the part before it
  CHECK(step.waits[0].steps == 3 + 2);
  CHECK(step.waits[1].steps == 3);
}

TEST_CASE("hierarchical sends 2(g-1)/g within the node and only its share of 1/g to the same place of other nodes") {
  const Schedule s = hierarchical_all_reduce(12, 12000_B, 4, ring_reduce_scatter(4, {}), ring_all_reduce(3, {}),
                                             ring_all_gather(4, {}));
  for (Actor r = 0; r < 12; ++r) {
    Bytes within, between;
    for (int i = 0; i < s.n_steps(r, 0); ++i) {
      Step step;
      s.step(r, 0, i, step);
      for (const Op& op : step.ops) {
        if (op.what != Do::send) continue;
        (op.peer / 4 == r / 4 ? within : between) += s.size(op.region);
        if (op.peer / 4 != r / 4) CHECK(op.peer % 4 == r % 4);
      }
    }
    CHECK(s.n_steps(r, 0) == 3 + 4 + 3);
    CHECK(within == Bytes{2 * 3 * 3000});   // 2(g-1)/g of 12000
    CHECK(between == Bytes{2 * 2 * 1000});  // 2(N-1)/N of 3000
  }
}

TEST_CASE("every algorithm that may stand within hierarchical is proved and executed there") {
  const Algorithm& self = *find_algorithm("hierarchical");
  const auto choices = [&](const char* name) {
    for (const Parameter& each : self.parameters)
      if (each.name == name) return each.choices;
    return std::vector<std::string>{};
  };
  CHECK(choices("inner").front() == "ring");
  CHECK(choices("outer").front() == "ring");
  CHECK(choices("inner").size() >= 3);
  CHECK(choices("outer").size() >= 4);
  for (const std::string& inner : choices("inner")) {
    for (const std::string& outer : choices("outer")) {
      for (const std::int64_t p : {5, 1000003}) {
        CAPTURE(inner);
        CAPTURE(outer);
        const Schedule s = self.make({.ranks = 32, .bytes = {p}},
                                     {.numbers = {{"group", 4}}, .texts = {{"inner", inner}, {"outer", outer}}});
        CHECK(verdict(s) == "accepted");
        CHECK(interpret(s, 7) == Outcome::right);
      }
    }
  }
}

TEST_CASE("the torus takes rings along its dimensions: 2 sum(d-1) steps, 2(n-1)/n of the size, neighbors only") {
  const Schedule s = torus_all_reduce({2, 3, 4}, 24000_B);
  for (Actor r = 0; r < 24; ++r) {
    const Sent found = sent(s, r, 0);
    CHECK(found.steps == 2 * (1 + 2 + 3));
    CHECK(found.bytes == Bytes{2 * 23 * 1000});
    const int x = r / 12, y = r / 4 % 3, z = r % 4;
    CHECK(found.to ==
          std::set<Actor>{(1 - x) * 12 + y * 4 + z, x * 12 + (y + 1) % 3 * 4 + z, x * 12 + y * 4 + (z + 1) % 4});
    for (const Schedule& half : {torus_reduce_scatter({2, 3, 4}, 24000_B), torus_all_gather({2, 3, 4}, 24000_B)}) {
      CHECK(sent(half, r, 0).steps == 1 + 2 + 3);
      CHECK(sent(half, r, 0).bytes == Bytes{23 * 1000});
    }
  }
}

TEST_CASE("bucket gives each of 2D lanes an equal share, and lane 2j starts along dimension j") {
  const Schedule s = bucket_all_reduce({3, 3}, 36000_B);  // 4 lanes of 9 chunks of 1000
  REQUIRE(s.lanes == 4);
  for (Lane lane = 0; lane < 4; ++lane) {
    const Sent found = sent(s, 4, lane);  // the center, (1, 1)
    CHECK(found.steps == 2 * (2 + 2));
    CHECK(found.bytes == Bytes{2 * 8 * 1000});
    CHECK(found.to == (lane % 2 == 0 ? std::set<Actor>{7, 5} : std::set<Actor>{1, 3}));
    Step step;
    s.step(4, lane, 0, step);
    CHECK(step.ops[0].peer == std::vector{7, 1, 5, 3}[static_cast<std::size_t>(lane)]);
  }
}

TEST_CASE("on a torus of equal dimensions bucket takes the form: as often as the torus's rings, a 2D-th of the bytes") {
  const Bandwidth b = 10_GBps;
  const Picoseconds a = 1'000'000_ps;
  for (const std::vector<int>& dimensions : {std::vector{3, 3, 3}, {4, 4}, {5, 5}, {7}, {3, 3, 3, 3}}) {
    const auto D = static_cast<std::int64_t>(dimensions.size());
    std::int64_t n = 1;
    for (const int d : dimensions) n *= d;
    const Bytes p{2 * D * n * 5000};
    const Topology net = build(Torus{.dimensions = dimensions, .link = {.bandwidth = b, .latency = a}});
    const std::int64_t steps = 2 * D * (dimensions[0] - 1);
    const Picoseconds at_once = run(net, check(bucket_all_reduce(dimensions, p))).duration();
    const Picoseconds in_turn = run(net, check(torus_all_reduce(dimensions, p))).duration();
    CAPTURE(n);
    CHECK(at_once == times(steps, a) + transfer_time({2 * (n - 1) * 5000}, b));
    CHECK(in_turn == times(steps, a) + transfer_time({2 * (n - 1) * 5000 * 2 * D}, b));
  }
}

TEST_CASE("symmetric compositions are proved by symmetry: a torus of 4096 ranks in no time") {
  const CheckedSchedule checked = check(torus_all_reduce({16, 16, 16}, 1_GiB));
  CHECK(checked.proof().by == Proof::By::symmetry);
  CHECK(checked.proof().operations == 4096LL * 2 * 2 * (15 + 15 + 15));
}

TEST_CASE("two levels of symmetric parts are symmetric: proved by one chunk, and folded where paths are alike") {
  for (const int group : {1, 2, 4, 8, 16, 32}) {
    for (const char* inner : {"ring", "halving_doubling", "pat"}) {
      for (const char* outer : {"ring", "halving_doubling"}) {
        CAPTURE(group);
        CAPTURE(inner);
        CAPTURE(outer);
        const Schedule s = find_algorithm("hierarchical")
                               ->make({.ranks = 32, .bytes = 1_MiB},
                                      {.numbers = {{"group", group}}, .texts = {{"inner", inner}, {"outer", outer}}});
        const Proof proof = check(s).proof();
        CHECK(proof.by == Proof::By::symmetry);
        CHECK(proof.operations == check(without_symmetry(s)).proof().operations);
      }
    }
  }
  // One whose chunks are not one for each node claims none.
  CHECK_FALSE(
      find_algorithm("hierarchical")
          ->make({.ranks = 32, .bytes = 1_MiB}, {.numbers = {{"group", 4}}, .texts = {{"outer", "recursive_doubling"}}})
          .symmetry.claimed());
  const CheckedSchedule checked = check(hierarchical_all_reduce(64, 64_MiB, 8, halving_reduce_scatter(8, {}),
                                                                ring_all_reduce(8, {}), doubling_all_gather(8, {})));
  const Topology net = star(64, {.bandwidth = 10_GBps, .latency = 1'000'000_ps});
  const Timeline folded = run(net, checked, {.fold = true, .fold_from = 0});
  const Timeline whole = run(net, checked, {.fold = false});
  CHECK(folded.folded.has_value());
  CHECK(folded.finish == whole.finish);
  CHECK(folded.link_bytes == whole.link_bytes);
  CHECK(folded.transfers == whole.transfers);
}

TEST_CASE("a claim that forgets in which order two levels number their chunks is refused") {
  Schedule s = hierarchical_all_reduce(12, 12000_B, 4, ring_reduce_scatter(4, {}), ring_all_reduce(3, {}),
                                       ring_all_gather(4, {}));
  CHECK(verdict(s) == "accepted");
  s.symmetry = Symmetry({3, 4});
  CHECK(verdict(s).find("a symmetry is claimed, but rank 1 does not do what rank 0 does") != std::string::npos);
}

TEST_CASE("two levels beat one ring where latencies count, because the sum of two roots is smaller") {
  // 64 ranks: 2*63 steps against 2*(7 + 7) + 2*7... the bytes are the same.
  const Schedule flat = ring_all_reduce(64, 64_KiB);
  const Schedule two = hierarchical_all_reduce(64, 64_KiB, 8, ring_reduce_scatter(8, {}), ring_all_reduce(8, {}),
                                               ring_all_gather(8, {}));
  const Picoseconds a = 2'000'000_ps;
  CHECK(on_star(flat) - on_star(two) == times(2 * 63 - 2 * 14, a));
}

TEST_CASE("grids that do not fit are refused by name, and the topology's are taken where nothing is said") {
  const auto text = [](const char* dimensions) {
    return Arguments{.numbers = {}, .texts = {{"dimensions", dimensions}}};
  };
  CHECK(refusal("torus", {.ranks = 12, .bytes = 1_KiB}, text("4x4")) ==
        "torus: expected dimensions that multiply to 12 ranks, found 4x4");
  CHECK(refusal("torus", {.ranks = 12, .bytes = 1_KiB, .grid = {2, 4}}, {}) ==
        "torus: expected dimensions that multiply to 12 ranks, found 2x4");
  for (const char* odd : {"4x", "x4", "4 x 4", "0x12", "-3x-4", "4x4x", "4y3", "99999999999", "twelve"})
    CHECK(refusal("bucket", {.ranks = 12, .bytes = 1_KiB}, text(odd)) ==
          std::string("bucket: expected dimensions such as \"4x4x2\", found \"") + odd + "\"");
  CHECK(refusal("hierarchical", {.ranks = 12, .bytes = 1_KiB}, {}) ==
        "hierarchical: expected the parameter \"group\", the number of ranks per node, found none");
  CHECK(refusal("hierarchical", {.ranks = 12, .bytes = 1_KiB}, {.numbers = {{"group", 5}}}) ==
        "hierarchical: expected nodes of equal size, found 12 ranks in groups of 5");
  CHECK(refusal("hierarchical", {.ranks = 12, .bytes = 1_KiB, .grid = {4, 3}},
                {.texts = {{"inner", "halving_doubling"}}}) ==
        "halving_doubling reduce_scatter needs a power-of-two number of ranks, found 3");
  const Algorithm& torus = *find_algorithm("torus");
  CHECK(torus.make({.ranks = 12, .bytes = 1_KiB, .grid = {3, 4}}, {}).algorithm == "torus dimensions=3x4");
  CHECK(torus.make({.ranks = 12, .bytes = 1_KiB, .grid = {3, 4}}, text("12")).n_steps(0, 0) == 22);
  CHECK(find_algorithm("hierarchical")->make({.ranks = 12, .bytes = 1_KiB, .grid = {3, 4}}, {}).algorithm ==
        "hierarchical group=4 inner=ring outer=ring");
}

}  // namespace compose_test
