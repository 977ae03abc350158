// MSCCL XML out: what is written reads back as the same schedule, in an order that is at least the original's.
#include "algorithms/formats/msccl_export.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "algorithms/catalog.hpp"
#include "algorithms/composed/buffers.hpp"
#include "algorithms/formats/msccl_import.hpp"
#include "algorithms/formats/thread_blocks.hpp"
#include "sim/base/error.hpp"
#include "sim/check/check.hpp"
#include "sim/schedule/collective.hpp"
#include "tests/support/every_algorithm.hpp"
#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/written_schedule.hpp"

namespace msccl_export_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {

/// Which operation, independent of lanes and steps: the k-th on its connection, or the k-th of its kind on its regions.
using Key = std::tuple<Do, Actor, int, Region, Region, int>;

/// One actor's operations and what orders them.
class Order {
 public:
  Order(const StoredSchedule& stored, Actor actor, bool with_regions) {
    begin_.resize(static_cast<std::size_t>(stored.lanes));
    end_.resize(begin_.size());
    bool moved = true;
    while (moved) {  // lane by lane as far as waits let it
      moved = false;
      for (Lane lane = 0; lane < stored.lanes; ++lane)
        while (advance(stored, actor, lane)) moved = true;
    }
    std::map<Key, int> seen;
    for (Lane lane = 0; lane < stored.lanes; ++lane) {
      const auto& steps = stored.lane(actor, lane);
      REQUIRE(begin_[static_cast<std::size_t>(lane)].size() == steps.size());
      for (std::size_t i = 0; i < steps.size(); ++i)
        for (const Op& op : steps[i].ops) {
          const bool message = op.peer >= 0;
          Key key{op.what == Do::receive_add ? Do::receive : op.what,
                  op.peer,
                  op.channel,
                  message ? Region{} : op.region,
                  message ? Region{} : op.operand,
                  0};
          if (!with_regions) std::get<3>(key) = std::get<4>(key) = Region{};
          std::get<5>(key) = seen[key]++;
          ops_[key] = {op, lane, i};
        }
    }
  }

  struct Placed {
    Op op;
    Lane lane = 0;
    std::size_t step = 0;
  };
  bool before(const Placed& a, const Placed& b) const {
    const std::vector<int>& done = begin_[static_cast<std::size_t>(b.lane)][b.step];
    return done[static_cast<std::size_t>(a.lane)] > static_cast<int>(a.step);
  }
  const std::map<Key, Placed>& ops() const { return ops_; }

 private:
  bool advance(const StoredSchedule& stored, Actor actor, Lane lane) {
    auto& begin = begin_[static_cast<std::size_t>(lane)];
    auto& end = end_[static_cast<std::size_t>(lane)];
    const auto& steps = stored.lane(actor, lane);
    if (begin.size() == steps.size()) return false;
    std::vector<int> known(begin_.size(), 0);
    if (!end.empty()) known = end.back();
    for (const Wait& wait : steps[begin.size()].waits) {
      const auto& other = end_[static_cast<std::size_t>(wait.lane)];
      if (other.size() < static_cast<std::size_t>(wait.steps)) return false;
      if (wait.steps == 0) continue;
      for (std::size_t l = 0; l < known.size(); ++l)
        known[l] = std::max(known[l], other[static_cast<std::size_t>(wait.steps - 1)][l]);
    }
    begin.push_back(known);
    known[static_cast<std::size_t>(lane)] = static_cast<int>(begin.size());
    end.push_back(known);
    return true;
  }
  std::vector<std::vector<std::vector<int>>> begin_, end_;  // [lane][step][lane] steps known to be done
  std::map<Key, Placed> ops_;
};

bool same_op(const Op& a, const Op& b) { return a.what == b.what && a.region == b.region && a.operand == b.operand; }

/// Every operation is there, on its regions, and what was ordered is ordered.
void check_order(const StoredSchedule& original, const StoredSchedule& again) {
  const bool renumbered = original.placement == Placement::relative;
  REQUIRE(original.actors == again.actors);
  std::size_t n_pairs = 0;
  for (Actor actor = 0; actor < original.actors; ++actor) {
    CAPTURE(actor);
    const Order a(original, actor, !renumbered), b(again, actor, !renumbered);
    REQUIRE(a.ops().size() == b.ops().size());
    std::vector<std::pair<Order::Placed, Order::Placed>> ops;  // here and there
    for (const auto& [key, placed] : a.ops()) {
      REQUIRE(b.ops().count(key) == 1);
      ops.emplace_back(placed, b.ops().at(key));
    }
    for (const auto& [here, there] : ops) {
      if (!renumbered) CHECK(same_op(here.op, there.op));
      for (const auto& [later_here, later_there] : ops) {
        if (!a.before(here, later_here)) continue;
        ++n_pairs;
        CHECK(b.before(there, later_there));
      }
    }
  }
  if (original.steps[0].size() > 1) CHECK(n_pairs > 0);
}

/// Blocks that MSCCL numbers otherwise are copied one by one.
bool splits_copies(const StoredSchedule& stored) {
  for (const auto& lane : stored.steps)
    for (const Step& step : lane)
      for (const Op& op : step.ops)
        if (stored.placement == Placement::relative && op.what == Do::copy && op.region.count > 1) return true;
  return false;
}

StoredSchedule again(const StoredSchedule& stored) { return import_msccl(export_msccl(stored), "again.xml"); }

/// Can MSCCL name it?
bool has_name(const Schedule& s) {
  const CollectiveOp op = s.collective.op;
  return s.actors == s.collective.ranks && (op == CollectiveOp::all_reduce || op == CollectiveOp::all_gather ||
                                            op == CollectiveOp::reduce_scatter || op == CollectiveOp::all_to_all);
}

std::string refusal(const Schedule& schedule) {
  try {
    export_msccl(store(schedule));
    return "written";
  } catch (const InputError& error) {
    return error.what();
  }
}

std::filesystem::path root() { return test::source_dir(); }

}  // namespace

TEST_CASE("a file that is read and written is the same schedule when it is read again") {
  int n = 0;
  for (const auto& folder : {root() / "tests/data/schedules", root() / "../shared/data/msccl"}) {
    for (const auto& path : test::files_in(folder, ".xml")) {
      CAPTURE(path.string());
      const StoredSchedule stored = import_msccl(test::read_file(path), path.string());
      const StoredSchedule back = again(stored);
      CHECK(same_schedule(stored, back));
      CHECK(back.name == stored.name);
      CHECK(back.protocol == stored.protocol);
      CHECK(back.max_bytes == stored.max_bytes);
      CHECK(export_msccl(back) == export_msccl(stored));
      ++n;
    }
  }
  CHECK(n >= 5);
}

TEST_CASE("two schedules that differ in one operation, region or wait are not the same") {
  const StoredSchedule one =
      import_msccl(test::read_file(root() / "tests/data/schedules/reduce-scatter-3.xml"), "r.xml");
  CHECK(same_schedule(one, one));
  StoredSchedule other = one;
  other.lane(1, 2)[1].waits.pop_back();
  CHECK_FALSE(same_schedule(one, other));
  other = one;
  other.lane(2, 0)[0].ops[0].region.first ^= 1;
  CHECK_FALSE(same_schedule(one, other));
  other = one;
  other.lane(0, 2).pop_back();
  CHECK_FALSE(same_schedule(one, other));
}

TEST_CASE("what the catalog makes is written, proved when read again, and keeps operations, regions and order") {
  int written = 0;
  for (int ranks = 2; ranks <= 9; ++ranks) {
    // 2520 is divisible by every number of chunks up to 9 that can come, so blocks may be renumbered.
    for (const Schedule& schedule : every_algorithm(ranks, Bytes{2520})) {
      CAPTURE(schedule.algorithm);
      CAPTURE(ranks);
      if (!has_name(schedule)) continue;
      const StoredSchedule stored = store(schedule);
      const StoredSchedule back = again(stored);
      CHECK(same_schedule(as_thread_blocks(stored), back));
      if (!splits_copies(stored)) check_order(stored, back);
      CHECK(check(schedule_of(std::make_shared<const StoredSchedule>(back), Bytes{2520})).proof().slots_needed <= 8);
      ++written;
    }
  }
  CHECK(written >= 60);
}

TEST_CASE("what is put into other buffers than it is written for is written as MSCCL numbers them, and proved again") {
  int written = 0;  // 10080 is divided by every number of chunks up to 6 ranks that can come
  for (int ranks = 2; ranks <= 6; ++ranks) {
    for (const Schedule& plain : every_algorithm(ranks, Bytes{10080})) {
      if (!has_name(plain)) continue;
      const bool apart = plain.collective.op == CollectiveOp::all_to_all;
      const Schedule schedule = apart ? in_place(plain) : out_of_place(plain);
      CAPTURE(schedule.algorithm);
      CAPTURE(ranks);
      const StoredSchedule back = again(store(schedule));
      CHECK(back.placement == (apart ? Placement::in_place : Placement::separate));
      const Schedule made = schedule_of(std::make_shared<const StoredSchedule>(back), Bytes{10080});
      CHECK(check(made).proof().slots_needed <= 8);
      ++written;
    }
  }
  CHECK(written >= 30);
}

TEST_CASE(
    "an all-to-all in place that runs in pieces puts the input of each piece aside, and is proved when read again") {
  // 2 channels and pieces of at most 1260 B of 10080: 4 rounds each. 10080 / 8 pieces are 1260 B, or 4 and 3 equal
  // blocks.
  for (const char* algorithm : {"pairwise", "direct", "bruck"}) {
    for (const int ranks : {3, 4}) {
      CAPTURE(algorithm);
      CAPTURE(ranks);
      const Schedule schedule = make_schedule(*find_algorithm(algorithm),
                                              {.op = CollectiveOp::all_to_all,
                                               .ranks = ranks,
                                               .bytes = Bytes{10080},
                                               .channels = 2,
                                               .chunk = Bytes{1260},
                                               .in_place = true},
                                              {});
      const StoredSchedule back = again(store(schedule));
      CHECK(back.placement == Placement::in_place);
      CHECK_NOTHROW(check(schedule_of(std::make_shared<const StoredSchedule>(back), Bytes{10080})));
    }
  }
}

TEST_CASE("a ring's step is two of one thread block, the send first, and needs a slot") {
  const StoredSchedule blocks = as_thread_blocks(store(ring_all_reduce(4, 64_B)));
  CHECK(blocks.lanes == 1);
  const auto& steps = blocks.lane(1, 0);
  REQUIRE(steps.size() == 12);
  CHECK(steps[0].ops[0].what == Do::send);
  CHECK(steps[1].ops[0].what == Do::receive_add);
  CHECK(steps[1].waits.empty());
  CHECK(check(schedule_of(std::make_shared<const StoredSchedule>(blocks), 64_B)).proof().slots_needed == 1);
  // Also where the receive is listed first: all would wait for each other.
  WrittenSchedule turned(ring_all_reduce(4, 64_B));
  for (auto& lanes : turned.steps)
    for (Step& step : lanes[0]) std::swap(step.ops[0], step.ops[1]);
  CHECK(same_schedule(as_thread_blocks(store(turned.schedule())), blocks));
  // What comes is sent on at once: rrcs while sums are made, rcs while results go round, and the last only comes.
  const std::string xml = export_msccl(store(ring_all_reduce(4, 64_B)));
  std::map<std::string, int> types;
  for (std::size_t at = xml.find("type=\""); at != std::string::npos; at = xml.find("type=\"", at + 1))
    ++types[xml.substr(at + 6, xml.find('"', at + 6) - at - 6)];
  CHECK(types == std::map<std::string, int>{{"s", 4}, {"rrcs", 12}, {"rcs", 8}, {"r", 4}});
}

TEST_CASE("additions to one chunk come one after the other, or are refused: a thread block's are not atomic") {
  // Rank 0 of 4 receives from three in one step: each block's addition waits for the one before.
  const StoredSchedule blocks = as_thread_blocks(store(parameter_server(4, 8_B, 0)));
  REQUIRE(blocks.lanes == 3);
  CHECK(blocks.lane(0, 0)[0].waits.empty());
  for (Lane lane = 1; lane < 3; ++lane) {
    REQUIRE(blocks.lane(0, lane)[0].waits.size() == 1);
    CHECK(blocks.lane(0, lane)[0].waits[0].lane == lane - 1);
    CHECK(blocks.lane(0, lane)[0].waits[0].steps == 1);
  }
  // In lanes of their own nothing orders them.
  WrittenSchedule t(all_reduce(3, 12_B), 3, 2, 1);
  t.step(0, 0).receive_add(1, chunk(0));
  t.step(0, 1).receive_add(2, chunk(0));
  Step& back = t.step(0, 0);
  back.send(1, chunk(0));
  back.send(2, chunk(0));
  back.wait(1, 1);
  for (const Actor r : {1, 2}) {
    t.step(r).send(0, chunk(0));
    t.step(r).receive(0, chunk(0));
  }
  check(t.schedule());
  CHECK(refusal(t.schedule())
            .starts_with("MSCCL XML cannot represent by hand: additions to the same chunk are unordered, and they are "
                         "not atomic: rank 0, lane 0, step 0"));
}

TEST_CASE("a server's answers wait for all that came; a nop holds the second wait of a step") {
  // Rank 0 of 4 has three thread blocks, whose additions are in order; each answer waits for the last one, which knows
  // of the others; the last block's answer comes after its own.
  const StoredSchedule blocks = as_thread_blocks(store(parameter_server(4, 8_B, 0)));
  for (Lane lane = 0; lane < 2; ++lane) {
    REQUIRE(blocks.lane(0, lane)[1].waits.size() == 1);
    CHECK(blocks.lane(0, lane)[1].waits[0].lane == 2);
    CHECK(blocks.lane(0, lane)[1].waits[0].steps == 1);
  }
  CHECK(blocks.lane(0, 2)[1].waits.empty());
  const auto nops = [](const std::string& xml) {
    std::size_t n = 0;
    for (std::size_t at = xml.find("\"nop\""); at != std::string::npos; at = xml.find("\"nop\"", at + 1)) ++n;
    return n;
  };
  CHECK(nops(export_msccl(blocks)) == 0);
  // One a gpu, whose sum waits for two parts.
  const auto parts = import_msccl(test::read_file(root() / "tests/data/schedules/reduce-scatter-3.xml"), "r.xml");
  CHECK(nops(export_msccl(parts)) == 3);
}

TEST_CASE("what MSCCL XML cannot hold is refused by its name") {
  CHECK(refusal(sharded_parameter_server(4, 64_B, 2)) ==
        "MSCCL XML cannot represent parameter_server: it has 2 helpers, but the format supports only gpus that are "
        "ranks");
  CHECK(refusal(ring_broadcast(4, 64_B, 0, 4)) ==
        "MSCCL XML cannot represent ring: the format has no name for broadcast or does not state its root\n  hint: "
        "--to json supports every collective");
  CHECK(refusal(halving_doubling(256, 1_KiB, Fold::naive)) ==
        "MSCCL XML cannot represent halving_doubling: rank 0 moves 128 chunks in one operation, but the runtime "
        "supports at most 71");
  // One send, the last receive, and between them 2(n-1)-1 that receive and send: one more than fit.
  CHECK(refusal(ring_all_reduce(129, 1_KiB)) ==
        "MSCCL XML cannot represent ring: thread block 0 of gpu 0 has 257 steps, but the runtime supports at most 256");
  CHECK(refusal(ring_all_reduce(128, 1_KiB)) == "written");

  WrittenSchedule t(all_reduce(2, 12_B), 2, 1, 2);
  t.like.layout[0] = Layout::of_sizes({10_B, 2_B});
  for (const Actor r : {0, 1}) {
    t.step(r).send(1 - r, chunk(1 - r));
    t.steps[static_cast<std::size_t>(r)][0].back().receive_add(1 - r, chunk(r));
    t.step(r).send(1 - r, chunk(r));
    t.steps[static_cast<std::size_t>(r)][0].back().receive(1 - r, chunk(1 - r));
  }
  CHECK(refusal(t.schedule()) ==
        "MSCCL XML cannot represent by hand: its chunks have individual sizes\n  hint: --to json supports them");
  t.like.layout[0] = Layout::near_equal(12_B, 2);
  t.step(1).compute(Picoseconds{1});
  CHECK(refusal(t.schedule()) == "MSCCL XML cannot represent by hand: rank 1 computes");
}

TEST_CASE("what needs more than eight messages on their way is not written for connections with eight slots") {
  // Both send nine times before they receive, in lanes of their own steps: fine in one step, not one after the other.
  WrittenSchedule t(all_reduce(2, 18_B), 2, 1, 18);
  for (const Actor r : {0, 1}) {
    for (int c = 0; c < 9; ++c) t.step(r).send(1 - r, chunk(9 * (1 - r) + c));
    for (int c = 0; c < 9; ++c) t.step(r).receive_add(1 - r, chunk(9 * r + c));
    for (int c = 0; c < 9; ++c) t.step(r).send(1 - r, chunk(9 * r + c));
    for (int c = 0; c < 9; ++c) t.step(r).receive(1 - r, chunk(9 * (1 - r) + c));
  }
  CHECK(refusal(t.schedule()) ==
        "MSCCL XML cannot represent by hand: with one operation after another, it needs more messages in flight than "
        "the 8 slots of a connection");
}

TEST_CASE("a name keeps what XML has signs for") {
  StoredSchedule stored = store(ring_all_reduce(2, 2_KiB));
  stored.name = R"(a & b <"c"> &lt; d)";
  CHECK(export_msccl(stored).find(R"(<algo name="a &amp; b &lt;&quot;c&quot;> &amp;lt; d" )") == 0);
  CHECK(again(stored).name == stored.name);
}

}  // namespace msccl_export_test
