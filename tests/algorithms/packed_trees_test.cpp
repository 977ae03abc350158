// Collectives over packed trees: proved on random trees, counted as their header says, timed where that is known.
#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "algorithms/formats/json_schedule.hpp"
#include "algorithms/formats/msccl_export.hpp"
#include "algorithms/formats/msccl_import.hpp"
#include "algorithms/stored_schedule.hpp"
#include "algorithms/trees/packed_trees.hpp"
#include "sim/check/check.hpp"
#include "sim/run/run.hpp"
#include "topologies/catalog.hpp"

namespace packed_trees_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

/// k trees from each root, each rank's parent drawn among those that are in the tree already.
std::vector<SpanningTree> random_trees(int n, int k, std::mt19937& random, bool one_root) {
  std::vector<SpanningTree> trees;
  for (Actor root = 0; root < (one_root ? 1 : n); ++root)
    for (int j = 0; j < k; ++j) {
      SpanningTree tree{root, std::vector<Actor>(static_cast<std::size_t>(n), -1)};
      for (int i = 1; i < n; ++i)
        tree.parents[static_cast<std::size_t>((root + i) % n)] =
            (root + static_cast<int>(random() % static_cast<unsigned>(i))) % n;
      trees.push_back(tree);
    }
  return trees;
}

std::vector<SpanningTree> stars(int n) {
  std::vector<SpanningTree> trees;
  for (Actor root = 0; root < n; ++root) {
    trees.push_back({root, std::vector<Actor>(static_cast<std::size_t>(n), root)});
    trees.back().parents[static_cast<std::size_t>(root)] = -1;
  }
  return trees;
}

constexpr CollectiveOp of_trees[] = {CollectiveOp::all_gather, CollectiveOp::reduce_scatter, CollectiveOp::all_reduce,
                                     CollectiveOp::broadcast, CollectiveOp::reduce};

}  // namespace

TEST_CASE("collectives over random trees deliver every contribution exactly once, in any slices and streams") {
  std::mt19937 random(40);
  for (int n = 2; n <= 7; ++n)
    for (const CollectiveOp op : of_trees)
      for (const TreeSlices slices : {TreeSlices{1, 1}, TreeSlices{3, 1}, TreeSlices{1, 2}, TreeSlices{4, 3}}) {
        CAPTURE(n);
        CAPTURE(to_string(op));
        CAPTURE(slices.count);
        CAPTURE(slices.streams);
        const int k = 1 + static_cast<int>(random() % 3);
        const auto down = random_trees(n, k, random, has_root(op)), up = random_trees(n, k, random, has_root(op));
        const Schedule schedule = packed_trees(op, 100'003_B, down, up, slices);
        CHECK(schedule.collective.op == op);
        CHECK_NOTHROW(check(schedule));
      }
}

TEST_CASE("each rank sends its children's part of each tree, on channels that are numbered for each pair") {
  std::mt19937 random(41);
  const int n = 6, k = 2;
  const auto down = random_trees(n, k, random, false);
  const TreeSlices slices{4, 2};
  const Schedule schedule = packed_trees(CollectiveOp::all_gather, 96_KiB, down, {}, slices);
  CHECK(schedule.lanes == n * k * slices.streams);
  for (Actor r = 0; r < n; ++r) {
    int children = 0;
    for (const SpanningTree& tree : down)
      for (Actor child = 0; child < n; ++child) children += tree.parent(child) == r ? 1 : 0;
    Bytes sent;
    std::set<std::pair<Actor, int>> connections;
    for (Lane lane = 0; lane < schedule.lanes; ++lane)
      for (int i = 0; i < schedule.n_steps(r, lane); ++i) {
        Step step;
        schedule.step(r, lane, i, step);
        for (const Op& op : step.ops)
          if (op.what == Do::send) {
            sent += schedule.size(op.region);
            connections.insert({op.peer, op.channel});
            CHECK(op.channel < n * k * slices.streams);
          }
      }
    CHECK(sent.count == children * (96_KiB).count / (n * k));
    CHECK(connections.size() == static_cast<std::size_t>(children * slices.streams));
    // From 0 on, for each peer: a channel is there only if the one before it is.
    for (const auto& [peer, channel] : connections) CHECK((channel == 0 || connections.contains({peer, channel - 1})));
  }
}

TEST_CASE("trees of one hop on a star take a latency and all blocks but one over a port") {
  const LinkSpec link{.bandwidth = 10_GBps, .latency = 1us, .source = "test"};
  for (const int n : {2, 4, 8}) {
    CAPTURE(n);
    Star star;
    star.ranks = n;
    star.link = link;
    const Topology topology = build(star);
    const Bytes block = 1_MiB;
    const Schedule schedule = packed_trees(CollectiveOp::all_gather, block * n, stars(n), {}, {});
    CHECK(run(topology, check(schedule)).duration() == 2us + transfer_time(block * (n - 1), 10_GBps));
  }
}

TEST_CASE("streams hide the latency of one another") {
  // Two ranks, one tree from each: 16 slices of 1 MB take 16 (100 us + 2 us) one after the other. In two streams one
  // has the link while the other's message is on its way: all 16 MB in 1600 us, after one latency.
  Star star;
  star.ranks = 2;
  star.link = {.bandwidth = 10_GBps, .latency = 1us, .source = "test"};
  const Topology topology = build(star);
  const auto time = [&](const TreeSlices& slices) {
    return run(topology, check(packed_trees(CollectiveOp::all_gather, Bytes{32'000'000}, stars(2), {}, slices)))
        .duration();
  };
  CHECK(time({16, 1}) == 16 * 102us);
  CHECK(time({8, 2}) == 1602us);
}

TEST_CASE("a schedule of trees is the same after ringsim's JSON, and keeps its promise after MSCCL's XML") {
  std::mt19937 random(42);
  for (const CollectiveOp op : {CollectiveOp::all_gather, CollectiveOp::reduce_scatter, CollectiveOp::all_reduce}) {
    CAPTURE(to_string(op));
    const StoredSchedule stored =
        store(packed_trees(op, 48_KiB, random_trees(4, 2, random, false), random_trees(4, 2, random, false), {2, 2}));
    CHECK(same_schedule(stored, import_json(export_json(stored), "file")));
    const auto read = std::make_shared<const StoredSchedule>(import_msccl(export_msccl(stored), "file"));
    CHECK(read->op == op);
    CHECK_NOTHROW(check(schedule_of(read, even_size(*read))));
  }
}

}  // namespace packed_trees_test
