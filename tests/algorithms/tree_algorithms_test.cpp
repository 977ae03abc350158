// Trees, direct sends, barriers and rings in pieces: what their doc comments say, counted from the schedules, and what
// no all-reduce can beat.
#include <doctest/doctest.h>

#include <numeric>
#include <set>
#include <vector>

#include "algorithms/catalog.hpp"
#include "sim/base/error.hpp"
#include "sim/check/check.hpp"
#include "sim/run/run.hpp"
#include "sim/schedule/collective.hpp"
#include "tests/support/every_algorithm.hpp"
#include "tests/support/tiny.hpp"
#include "tests/support/verdict.hpp"
#include "tests/support/written_schedule.hpp"
#include "topologies/catalog.hpp"

namespace tree_algorithms_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {

struct Count {
  std::vector<int> steps;  // [lane]
  Bytes sent;
  int messages = 0;
  std::set<Actor> to;  // whom it sends to
};

Count count(const Schedule& schedule, Actor actor) {
  Count found;
  for (Lane lane = 0; lane < schedule.lanes; ++lane) {
    found.steps.push_back(schedule.n_steps(actor, lane));
    for (int i = 0; i < found.steps.back(); ++i) {
      Step step;
      schedule.step(actor, lane, i, step);
      for (const Op& op : step.ops) {
        if (op.what != Do::send) continue;
        found.sent += schedule.size(op.region);
        ++found.messages;
        found.to.insert(op.peer);
      }
    }
  }
  return found;
}

int ceil_log2(int n) {
  int m = 0;
  while ((1 << m) < n) ++m;
  return m;
}

template <class Tree>
std::vector<Actor> children(const Tree& tree, Actor r) {
  std::vector<Actor> found;
  tree.for_each_child(r, [&](Actor child) { found.push_back(child); });
  return found;
}

/// Checks that it is a tree of the root: every other rank is the child of its parent, at most `most` of one.
/// Returns its depth.
template <class Tree>
int depth_of_tree(const Tree& tree, int n, Actor root, std::size_t most) {
  int deepest = 0;
  for (Actor r = 0; r < n; ++r) {
    CAPTURE(r);
    const std::vector<Actor> below = children(tree, r);
    CHECK(below.size() <= most);
    CHECK(tree.has_child(r) == !below.empty());
    for (const Actor child : below) CHECK(tree.parent(child) == r);
    CHECK((tree.parent(r) < 0) == (r == root));
    int depth = 0;
    for (Actor up = r; up != root && depth <= n; ++depth) {
      const Actor parent = tree.parent(up);
      const std::vector<Actor> siblings = children(tree, parent);
      CHECK(std::count(siblings.begin(), siblings.end(), up) == 1);
      up = parent;
    }
    CHECK(depth < n);
    deepest = std::max(deepest, depth);
  }
  return deepest;
}

}  // namespace

TEST_CASE("a binomial tree's root takes ceil(log2 n) steps one way and sends as often; n-1 messages reach all") {
  for (int n = 2; n <= 33; ++n) {
    const int m = ceil_log2(n);
    for (const Actor root : {0, n / 2, n - 1}) {
      CAPTURE(n);
      CAPTURE(root);
      const Schedule down = binomial_broadcast(n, 1000_B, root), up = binomial_reduce(n, 1000_B, root);
      const Schedule both = binomial_all_reduce(n, 1000_B, root);
      CHECK(count(down, root).steps[0] == m);
      CHECK(count(down, root).sent == 1000_B * m);
      CHECK(count(up, root).steps[0] == m);
      CHECK(count(up, root).sent == 0_B);
      CHECK(count(both, root).steps[0] == 2 * m);
      int down_messages = 0;
      for (Actor r = 0; r < n; ++r) {
        CAPTURE(r);
        down_messages += count(down, r).messages;
        CHECK(count(down, r).steps[0] <= m);
        CHECK(count(up, r).steps[0] <= m + (r == root ? 0 : 1));
        CHECK(count(up, r).sent == (r == root ? 0_B : 1000_B));
        CHECK(count(both, r).sent == count(up, r).sent + count(down, r).sent);
        for (const Actor to : count(down, r).to) {  // to ranks that differ in one bit, seen from the root
          const int bit = wrap(to - root, n) - wrap(r - root, n);
          CHECK(bit > 0);
          CHECK((bit & (bit - 1)) == 0);
        }
      }
      CHECK(down_messages == n - 1);
    }
  }
}

TEST_CASE("a binomial scatter sends the root's buffer but its own block; a gather brings each block behind a rank") {
  for (int n = 2; n <= 33; ++n) {
    for (const Actor root : {0, n / 3}) {
      CAPTURE(n);
      CAPTURE(root);
      const Bytes size{1000 * n};
      CHECK(count(binomial_scatter(n, size, root), root).sent == Bytes{1000 * (n - 1)});
      const Schedule gather = binomial_gather(n, size, root);
      Bytes into_root;
      for (Actor r = 0; r < n; ++r) {
        const Count found = count(gather, r);
        CHECK(found.messages == (r == root ? 0 : 1));
        const int v = wrap(r - root, n);
        if (r != root) CHECK(found.sent == Bytes{1000 * std::min(v & -v, n - v)});  // its whole subtree
        if (found.to.contains(root)) into_root += found.sent;
      }
      CHECK(into_root == Bytes{1000 * (n - 1)});
    }
  }
}

TEST_CASE("a dissemination barrier takes ceil(log2 n) steps, each a signal to r + 2^k, and cannot do with fewer") {
  for (int n = 2; n <= 33; ++n) {
    CAPTURE(n);
    const Schedule barrier = dissemination_barrier(n);
    const int m = ceil_log2(n);
    for (Actor r = 0; r < n; ++r) {
      std::set<Actor> to;
      for (int k = 0; k < m; ++k) to.insert(wrap(r + (1 << k), n));
      const Count found = count(barrier, r);
      CHECK(found.steps[0] == m);
      CHECK(found.messages == m);
      CHECK(found.sent == 0_B);
      CHECK(found.to == to);
    }
    Schedule shorter = barrier;
    shorter.n_steps = [m](Actor, Lane) { return m - 1; };
    CHECK(verdict(shorter).find("is missing, which no operation changes") != std::string::npos);
  }
}

TEST_CASE("a dissemination barrier of more ranks than can be proved is refused by name") {
  CHECK_THROWS_WITH_AS(dissemination_barrier(16385),
                       "dissemination: expected at most 16384 ranks, found 16385\n  hint: its proof follows a token "
                       "from every rank to every rank; binomial_tree needs only one token in total",
                       InputError);
}

TEST_CASE("a barrier from which a rank may go before all have come is refused") {
  // Ranks 1 and 2 tell rank 0; rank 0 tells only rank 2 that all are there.
  WrittenSchedule t(barrier(3), 3, 1, 1);
  t.step(1).send(0, chunk(0));
  t.step(2).send(0, chunk(0));
  Step& all_come = t.step(0);
  all_come.receive_add(1, chunk(0));
  all_come.receive_add(2, chunk(0));
  t.step(0).send(2, chunk(0));
  t.step(2).receive(0, chunk(0));
  CHECK(verdict(t) ==
        "schedule by hand barrier of 3 ranks: rank 1, data[0]: the contribution of rank 0 is missing, which no "
        "operation changes");
  t.steps[0][0][1].send(1, chunk(0));
  t.step(1).receive(0, chunk(0));
  CHECK(verdict(t) == "accepted");
}

TEST_CASE("a k-ary tree has all ranks, none with more than k children, and a chain is the one of k = 1") {
  for (int n = 1; n <= 33; ++n) {
    for (const Actor root : {0, n / 2}) {
      for (const int arity : {1, 2, 3, 5}) {
        CAPTURE(n);
        CAPTURE(arity);
        const KaryTree tree{n, root, arity};
        CHECK(depth_of_tree(tree, n, root, static_cast<std::size_t>(arity)) == tree.depth());
        if (arity == 1) CHECK(tree.depth() == n - 1);
      }
    }
  }
  CHECK(KaryTree{15, 0, 2}.depth() == 3);  // 1 + 2 + 4 + 8
  CHECK(KaryTree{16, 0, 2}.depth() == 4);
}

TEST_CASE("in a double tree a rank that passes on in one tree is a leaf of the other, but for a root") {
  for (int n = 2; n <= 130; ++n) {
    CAPTURE(n);
    const DoubleTree trees[] = {DoubleTree::over_all(n, 0), DoubleTree::over_all(n, 1)};
    for (int t = 0; t < 2; ++t) {
      const Actor root = t == 0 ? 0 : n % 2 == 0 ? n - 1 : 1;
      CHECK(depth_of_tree(trees[t], n, root, 2) == ceil_log2(n));
      CHECK(trees[t].depth() == ceil_log2(n));
    }
    for (Actor r = 0; r < n; ++r) {
      CAPTURE(r);
      const bool is_leaf = !trees[0].has_child(r) || !trees[1].has_child(r);
      // Of an odd number of ranks the even positions are one more than the odd ones: rank 0, root of tree 0.
      CHECK(is_leaf == !(n % 2 == 1 && r == 0));
    }
    for (const Actor root : {0, n / 2}) {
      const DoubleTree below[] = {DoubleTree::below(root, n, 0), DoubleTree::below(root, n, 1)};
      for (const DoubleTree& tree : below) CHECK(depth_of_tree(tree, n, root, 2) == ceil_log2(n));
      for (Actor r = 0; r < n; ++r)
        if (r != root) CHECK((!below[0].has_child(r) || !below[1].has_child(r)));
    }
  }
}

TEST_CASE("with chains below, only the first rank of a group is in the trees, and the depth grows by the chain") {
  for (const int nodes : {1, 2, 3, 8, 13}) {
    for (const int group : {1, 2, 4, 8}) {
      CAPTURE(nodes);
      CAPTURE(group);
      const int n = nodes * group;
      const DoubleTree firsts = DoubleTree::over_all(nodes, 1);
      const TreeOfChains tree(n, group, 1);
      Actor root = 0;
      while (firsts.parent(root) >= 0) ++root;
      CHECK(depth_of_tree(tree, n, root * group, 3) == firsts.depth() + group - 1);
      CHECK(tree.depth() == firsts.depth() + group - 1);
      for (Actor r = 0; r < n; ++r)
        CHECK(tree.parent(r) == (r % group > 0                  ? r - 1
                                 : firsts.parent(r / group) < 0 ? -1
                                                                : firsts.parent(r / group) * group));
    }
  }
  // Nothing but latencies: 4 nodes of 8 go up and down 7 places of a chain and 2 of the tree, 1 us each.
  const Topology net = star(32, {.bandwidth = 10_GBps, .latency = 500'000_ps});
  CHECK(run(net, check(double_tree_all_reduce(32, 0_B, 1, 8))).duration() == times(2 * (7 + 2), 1'000'000_ps));
  CHECK_THROWS_WITH_AS(double_tree_all_reduce(12, 0_B, 1, 8),
                       "double_binary_tree: expected a group that divides 12 ranks, found 8", InputError);
}

TEST_CASE("pipelined trees take segments + 1 steps a lane, at the ends segments, and send what their comments say") {
  for (int n = 2; n <= 17; ++n) {
    for (const int segments : {1, 4}) {
      CAPTURE(n);
      CAPTURE(segments);
      const Bytes size{1000 * 8};
      const KaryTree tree{n, 1, 3};
      const Schedule down = kary_broadcast(n, size, 1, 3, segments), up = kary_reduce(n, size, 1, 3, segments);
      const Schedule both = kary_all_reduce(n, size, 1, 3, segments);
      for (Actor r = 0; r < n; ++r) {
        CAPTURE(r);
        const auto below = static_cast<std::int64_t>(children(tree, r).size());
        const int steps = r == 1 || below == 0 ? segments : segments + 1;
        CHECK(count(down, r).steps == std::vector{steps});
        CHECK(count(both, r).steps == std::vector{steps, steps});
        CHECK(count(down, r).sent == size * below);
        CHECK(count(up, r).sent == (r == 1 ? 0_B : size));
        CHECK(count(both, r).sent == count(down, r).sent + count(up, r).sent);
      }
      const Schedule two_trees = double_tree_all_reduce(n, size, segments);
      const Schedule two_down = double_tree_broadcast(n, size, n - 1, segments);
      Bytes down_in_all;
      for (Actor r = 0; r < n; ++r) {
        CHECK(count(two_trees, r).steps.size() == 4);
        CHECK(count(two_trees, r).sent <= size * 2 + (n % 2 == 1 && r == 0 ? Bytes{size.count / 2} : 0_B));
        CHECK(count(two_down, r).sent <= size);
        down_in_all += count(two_down, r).sent;
      }
      CHECK(count(two_down, n - 1).sent == size);
      CHECK(down_in_all == size * (n - 1));  // each other rank gets all of it once
    }
  }
}

TEST_CASE("direct sends take a step, two shots and the copy of one shot take two") {
  for (int n = 2; n <= 17; ++n) {
    CAPTURE(n);
    const Bytes size{1000 * n};
    const Actor root = n / 2;
    for (Actor r = 0; r < n; ++r) {
      const auto expect = [&](const Schedule& schedule, int steps, Bytes sent) {
        CAPTURE(to_string(schedule.collective.op));
        CAPTURE(r);
        CHECK(count(schedule, r).steps == std::vector{steps});
        CHECK(count(schedule, r).sent == sent);
      };
      const bool is_root = r == root;
      expect(direct_broadcast(n, size, root), 1, is_root ? size * (n - 1) : 0_B);
      expect(direct_reduce(n, size, root), 1, is_root ? 0_B : size);
      expect(direct_scatter(n, size, root), 1, is_root ? Bytes{1000 * (n - 1)} : 0_B);
      expect(direct_gather(n, size, root), 1, is_root ? 0_B : 1000_B);
      expect(direct_all_gather(n, size), 1, Bytes{1000 * (n - 1)});
      expect(direct_reduce_scatter(n, size), 1, Bytes{1000 * (n - 1)});
      expect(one_shot_all_reduce(n, size), 2, size * (n - 1));
      expect(two_shot_all_reduce(n, size), 2, Bytes{2000 * (n - 1)});
      expect(direct_send_recv(n, size), 1, size);
      CHECK(count(direct_send_recv(n, size), r).to == std::set<Actor>{wrap(r + 1, n)});
    }
  }
}

TEST_CASE("a ring in pieces sends what the plain one does, in more steps, each ring to its own neighbor") {
  for (int n = 2; n <= 17; ++n) {
    const Bytes size{n * 1200};
    for (const Schedule& plain : {ring_all_reduce(n, size), ring_reduce_scatter(n, size), ring_all_gather(n, size)}) {
      for (Actor r = 0; r < n; ++r) {
        CAPTURE(n);
        CAPTURE(r);
        const Count whole = count(plain, r), sliced = count(in_pieces(plain, {.slices = 3}), r);
        CHECK(sliced.steps == std::vector{3 * whole.steps[0]});
        CHECK(sliced.sent == whole.sent);
        CHECK(sliced.to == whole.to);
        if (n == 2) continue;
        const Count both = count(in_pieces(plain, {.rings = 2}), r);
        CHECK(both.steps == std::vector{whole.steps[0], whole.steps[0]});
        CHECK(both.sent == whole.sent);
        CHECK(both.to == std::set<Actor>{wrap(r + 1, n), wrap(r - 1, n)});
        if (n != 5 && n < 7) continue;  // 2, 3, 4 and 6 have less than four numbers that share no factor with them
        CHECK(count(in_pieces(plain, {.rings = 4}), r).to.size() == 4);
      }
    }
  }
  CHECK(in_pieces(ring_all_reduce(4, 1_KiB), {}).algorithm == "ring");
  CHECK(in_pieces(ring_all_reduce(5, 1_KiB), {.rings = 2, .slices = 3}).algorithm == "ring rings=2 slices=3");
  CHECK_THROWS_WITH_AS(in_pieces(ring_all_reduce(6, 1_KiB), {.rings = 3}),
                       "ring: 6 ranks make 2 different rings, found rings 3\n  hint: each ring needs its own stride, "
                       "which must not have a common factor with the number of ranks",
                       InputError);
  CHECK_THROWS_WITH_AS(in_pieces(ring_all_reduce(65536, 1_KiB), {.rings = 64, .slices = 1024}),
                       "ring: 65536 ranks, 64 rings and 1024 slices make more than 2^27 chunks", InputError);
}

TEST_CASE("the catalog refuses settings that an op has no use for, and a barrier of bytes") {
  const Algorithm& ring = *find_algorithm("ring");
  CHECK_THROWS_WITH_AS(
      ring.make({.op = CollectiveOp::broadcast, .ranks = 4}, {.numbers = {{"slices", 2}}, .texts = {}}),
      "ring: slices applies to all_reduce, reduce_scatter and all_gather, not to broadcast\n  hint: remove slices",
      InputError);
  CHECK_THROWS_WITH_AS(find_algorithm("direct")->make({.op = CollectiveOp::gather, .ranks = 4},
                                                      {.numbers = {{"shots", 1}}, .texts = {}}),
                       "direct: shots applies to all_reduce, not to gather\n  hint: remove shots", InputError);
  for (const char* name : {"dissemination", "binomial_tree"})
    CHECK_THROWS_WITH_AS(find_algorithm(name)->make({.op = CollectiveOp::barrier, .ranks = 4, .bytes = 1_KiB}, {}),
                         "a barrier moves no data: expected 0 B, found 1024 B", InputError);
  CHECK(find_algorithm("chain")->make({.ranks = 4}, {}).algorithm == "chain segments=8");
  CHECK(find_algorithm("kary_tree")->make({.ranks = 4}, {.numbers = {{"arity", 3}}, .texts = {}}).algorithm ==
        "kary_tree arity=3 segments=8");
  CHECK(find_algorithm("direct")->make({.ranks = 4}, {}).algorithm == "direct shots=2");
  CHECK(find_algorithm("chain")->takes_root(CollectiveOp::all_reduce));
  CHECK_FALSE(find_algorithm("direct")->takes_root(CollectiveOp::all_reduce));
  CHECK(find_algorithm("direct")->takes_root(CollectiveOp::gather));
}

// To put a sum together takes K-1 messages for each byte, to bring it to the other ranks K-1 more: 2(K-1)p bytes leave
// K ports, so one of them sends at least 2(K-1)/K p (Patarasuk & Yuan, JPDC 69 (2009), theorem 1).
TEST_CASE("no all-reduce among the ranks alone beats 2(K-1)/K p/b on a star") {
  const Bandwidth b = 10_GBps;
  int runs = 0, at_the_bound = 0;
  for (int n = 2; n <= 17; ++n) {
    const Topology net = build(Star{n, {.bandwidth = b}});
    for (const std::int64_t p : {std::int64_t{n} * 2520, std::int64_t{1000003}}) {
      for (const Schedule& schedule : every_algorithm(n, {p})) {
        if (schedule.collective.op != CollectiveOp::all_reduce || schedule.actors > n) continue;
        CAPTURE(schedule.algorithm);
        CAPTURE(n);
        Bytes sent;
        for (Actor r = 0; r < n; ++r) sent += count(schedule, r).sent;
        CHECK(sent >= Bytes{2 * (n - 1) * p});
        const std::int64_t most = (2 * (n - 1) * p + n - 1) / n;  // some port sends at least that
        for (const NetworkModel model : {NetworkModel::ideal, NetworkModel::fair}) {
          const Picoseconds time = run(net, check(schedule), {.model = model}).duration();
          CHECK(time >= transfer_time({most}, b));
          ++runs;
          at_the_bound += time == transfer_time({most}, b) ? 1 : 0;
        }
      }
    }
  }
  CHECK(runs > 1000);
  CHECK(at_the_bound > 100);  // the ring and others reach it: the bound is not a loose one
}

}  // namespace tree_algorithms_test
