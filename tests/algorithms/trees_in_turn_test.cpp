// One tree rotated to all roots, and messages in a given order: proved, and refused where they are wrong.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "algorithms/trees/ordered_messages.hpp"
#include "algorithms/trees/trees_in_turn.hpp"
#include "sim/base/error.hpp"
#include "sim/check/check.hpp"

namespace trees_in_turn_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {

constexpr CollectiveOp three_ops[] = {CollectiveOp::all_gather, CollectiveOp::reduce_scatter, CollectiveOp::all_reduce};

std::size_t as_index(int i) { return static_cast<std::size_t>(i); }

/// A random tree of displacements, whose slices follow each other, over one or two ports.
TurningTree random_tree(int ranks, int slices, int ports, std::mt19937& random) {
  TurningTree tree;
  tree.ports = ports;
  for (int slice = 0; slice < slices; ++slice) {
    for (int d = 0; d < ranks; ++d) {
      tree.parent.push_back(d == 0 ? -1 : static_cast<int>(random() % as_index(d)));
      const int above = tree.parent.back();
      tree.turn.push_back(d == 0 ? -1
                                 : tree.turn[as_index(slice * ranks + above)] + 1 + static_cast<int>(random() % 3));
      // By the displacement from parent to child, as in a machine.
      tree.port.push_back(d == 0 ? -1 : (d - above) % ports);
    }
    if (slice > 0)  // slices of a block have one tree
      std::copy_n(tree.parent.begin(), ranks, tree.parent.begin() + slice * ranks);
  }
  for (int slice = 1; slice < slices; ++slice)
    for (int d = 1; d < ranks; ++d) {
      const std::size_t place = as_index(slice * ranks + d);
      tree.turn[place] = tree.turn[as_index(d)] + slice;
      tree.port[place] = tree.port[as_index(d)];
    }
  return tree;
}

}  // namespace

TEST_CASE("one tree rotated to all roots is proved for 2 to 16 ranks, any tree, slices and lanes") {
  std::mt19937 random(7);
  for (int ranks = 2; ranks <= 16; ++ranks)
    for (const CollectiveOp op : three_ops)
      for (const int slices : {1, 2})
        for (const int lanes : {1, 2, 3}) {
          CAPTURE(ranks);
          CAPTURE(slices);
          CAPTURE(lanes);
          const TurningTree down = random_tree(ranks, slices, 1 + ranks % 2, random);
          const TurningTree up = random_tree(ranks, slices, 1 + ranks % 2, random);
          const CheckedSchedule proved = check(trees_in_turn(op, 1_MiB, Symmetry({ranks}), down, up, slices, lanes));
          // Each rank sends each other rank's part once; an all_reduce once up and once down. An operation at each end.
          const std::int64_t messages =
              std::int64_t{ranks} * (ranks - 1) * slices * (op == CollectiveOp::all_reduce ? 2 : 1);
          CHECK(proved.proof().operations == 2 * messages);
          CHECK(proved.proof().symmetry.claimed() == (slices == 1));
        }
}

TEST_CASE("a tree turned in two digits is proved by its symmetry") {
  // Two nodes of three: 3 is the same place in the next node, and passes on to 4 and 5.
  const TurningTree tree{
      .parent = {-1, 0, 0, 0, 3, 3}, .turn = {-1, 0, 0, 0, 1, 1}, .port = {-1, 0, 0, 1, 0, 0}, .ports = 2};
  for (const CollectiveOp op : three_ops)
    CHECK(check(trees_in_turn(op, 6_MiB, Symmetry({2, 3}), tree, tree, 1, 2)).proof().by == Proof::By::symmetry);
}

TEST_CASE("a list in which a rank sends what it does not have is refused by the proof") {
  // Three ranks; 1 sends the piece of 0 to 2 and has it from there.
  const std::vector<OrderedMessage> good{{0, 1, 0}, {1, 2, 0}, {1, 0, 1}, {0, 2, 1}, {2, 0, 2}, {0, 1, 2}};
  for (const CollectiveOp op : three_ops) CHECK_NOTHROW(check(ordered_messages(op, 3, 3_MiB, 1, good, good)));
  std::vector<OrderedMessage> bad = good;
  std::swap(bad[0], bad[1]);
  CHECK_THROWS_AS(check(ordered_messages(CollectiveOp::all_gather, 3, 3_MiB, 1, bad, bad)), ScheduleError);
  bad = good;
  bad.pop_back();
  CHECK_THROWS_AS(check(ordered_messages(CollectiveOp::all_reduce, 3, 3_MiB, 1, bad, bad)), ScheduleError);
}

}  // namespace trees_in_turn_test
