// The closed forms, worked out by hand, and the conditions under which they hold.
#include "validate/closed_forms/closed_form.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "sim/check/check.hpp"
#include "sim/run/run.hpp"
#include "topologies/catalog.hpp"
#include "validate/closed_forms/grid.hpp"

namespace closed_form_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {

// b = 1 byte a nanosecond and a = 10 ns make the arithmetic easy to follow: times below are in ns.
const Uniform star{Shape::star, 1_GBps, 10'000_ps};

Picoseconds ns(std::int64_t n) { return Picoseconds{n * 1000}; }

ClosedForm form(const char* algorithm, int ranks, Bytes bytes, const Arguments& arguments = {},
                CollectiveOp op = CollectiveOp::all_reduce, const Uniform& machine = star) {
  const auto found =
      closed_form(*find_algorithm(algorithm), arguments, {.op = op, .ranks = ranks, .bytes = bytes}, machine);
  REQUIRE(found.has_value());
  return *found;
}

Uniform machine_of(const Topology& topology) { return uniform_of(topology, topology.ranks(), topology.helpers(), {}); }

}  // namespace

TEST_CASE("the forms of the table, worked by hand for 4 ranks and 400 bytes at 1 B/ns and a = 10 ns") {
  CHECK(form("parameter_server", 4, 400_B).time == ns(2 * 3 * 400 + 2 * 10));
  CHECK(form("parameter_server", 4, 400_B, {}, CollectiveOp::all_reduce, {Shape::full_mesh, 1_GBps, 10'000_ps}).time ==
        ns(2 * (400 + 10)));
  CHECK(form("parameter_server", 4, 400_B, {.numbers = {{"servers", 2}}}).time == ns(2 * 4 * 200 + 20));
  CHECK(form("parameter_server", 4, 400_B, {.numbers = {{"servers", 8}}}).time == ns(2 * 400 + 20));  // workers bind
  CHECK(form("ring", 4, 400_B).time == ns(6 * (10 + 100)));
  CHECK(form("ring", 4, 400_B, {}, CollectiveOp::reduce_scatter).time == ns(3 * (10 + 100)));
  CHECK(form("ring", 4, 400_B, {}, CollectiveOp::all_gather).time == ns(3 * (10 + 100)));
  CHECK(form("ring", 4, 400_B, {.numbers = {{"segments", 5}}}, CollectiveOp::broadcast).time == ns(7 * (10 + 80)));
  CHECK(form("halving_doubling", 4, 400_B).time == ns(2 * 2 * 10 + 2 * 300));
  CHECK(form("direct", 4, 400_B, {}, CollectiveOp::pairs).time == ns(10 + 400));
  CHECK(form("pairwise", 4, 400_B, {}, CollectiveOp::all_to_all).time == ns(3 * (10 + 100)));
  CHECK(form("direct", 4, 400_B, {}, CollectiveOp::all_to_all).time == ns(10 + 300));
}

TEST_CASE("the forms of trees and direct sends, worked by hand at 1 B/ns and a = 10 ns") {
  using enum CollectiveOp;
  const Uniform mesh{Shape::full_mesh, 1_GBps, 10'000_ps};
  const auto set = [](std::map<std::string, std::int64_t> numbers) { return Arguments{std::move(numbers), {}}; };
  // 5 ranks, 400 B: ceil(log2 5) = 3. The root's scatter is of 1, 2 and 1 blocks of 80 B.
  CHECK(form("binomial_tree", 5, 400_B, {}, broadcast).time == ns(3 * (10 + 400)));
  CHECK(form("binomial_tree", 5, 400_B, {}, reduce).time == ns(3 * (10 + 400)));
  CHECK(form("binomial_tree", 5, 400_B).time == ns(6 * (10 + 400)));
  CHECK(form("binomial_tree", 5, 400_B, {}, scatter).time == ns(3 * 10 + 4 * 80));
  CHECK(form("binomial_tree", 5, 400_B, {}, gather).time == ns(3 * 10 + 4 * 80));
  CHECK(form("binomial_tree", 5, 0_B, {}, barrier).time == ns(6 * 10));
  CHECK(form("dissemination", 5, 0_B, {}, barrier).time == ns(3 * 10));
  // On a star what the root sends goes through one port, on a mesh through four cables.
  CHECK(form("direct", 5, 400_B, {}, broadcast).time == ns(10 + 4 * 400));
  CHECK(form("direct", 5, 400_B, {}, broadcast, mesh).time == ns(10 + 400));
  CHECK(form("direct", 5, 400_B, {}, gather).time == ns(10 + 4 * 80));
  CHECK(form("direct", 5, 400_B, {}, gather, mesh).time == ns(10 + 80));
  CHECK(form("direct", 5, 400_B, {}, all_gather).time == ns(10 + 4 * 80));
  CHECK(form("direct", 5, 400_B).time == ns(2 * (10 + 4 * 80)));
  CHECK(form("direct", 5, 400_B, set({{"shots", 1}})).time == ns(10 + 4 * 400));
  CHECK(form("direct", 5, 400_B, set({{"shots", 1}}), all_reduce, mesh).time == ns(10 + 400));
  CHECK(form("direct", 5, 400_B, {}, send_recv).time == ns(10 + 400));
  // A chain of 5 has 4 edges; segments of 100 B.
  CHECK(form("chain", 5, 400_B, set({{"segments", 4}}), broadcast).time == ns((4 - 1 + 4) * (10 + 100)));
  CHECK(form("chain", 5, 400_B, set({{"segments", 4}}), all_reduce, mesh).time == ns((8 - 1 + 4) * (10 + 100)));
  // 8 ranks in a binary tree: 0; 1, 2; 3..6; 7. Rank 3 is the last to send, to one child.
  const Arguments binary = set({{"arity", 2}, {"segments", 4}});
  CHECK(form("kary_tree", 8, 400_B, binary, broadcast).time == ns((3 - 2 + 4) * (10 + 200) + 10 + 100));
  CHECK(form("kary_tree", 9, 400_B, binary, broadcast).time == ns((3 - 1 + 4) * (10 + 200)));
  CHECK(form("kary_tree", 8, 400_B, binary, broadcast, mesh).time == ns((3 - 1 + 4) * (10 + 100)));
  CHECK(form("kary_tree", 7, 400_B, binary, reduce).time == ns((2 - 1 + 4) * (10 + 200)));
  CHECK(form("kary_tree", 7, 400_B, binary, all_reduce, mesh).time == ns((4 - 1 + 4) * (10 + 100)));
  // Two trees of depth 3 over 8 ranks, half of the buffer each.
  CHECK(form("double_binary_tree", 8, 400_B, set({{"segments", 2}}), all_reduce, mesh).time ==
        ns((6 - 1 + 2) * (10 + 100)));
  CHECK(form("double_binary_tree", 8, 400_B, set({{"segments", 2}}), broadcast, mesh).time ==
        ns((3 - 1 + 2) * (10 + 100)));
  // Two rings of 5 share the ports of a star, but no cable of a mesh.
  CHECK(form("ring", 5, 400_B, set({{"rings", 2}})).time == ns(8 * (10 + 80)));
  CHECK(form("ring", 5, 400_B, set({{"rings", 2}}), all_reduce, mesh).time == ns(8 * (10 + 40)));
  CHECK(form("ring", 5, 400_B, set({{"slices", 2}})).time == ns(16 * (10 + 40)));
}

TEST_CASE("trees and rings in pieces say where their forms do not hold, and there simulation does part from them") {
  using enum CollectiveOp;
  struct Row {
    const char* algorithm;
    CollectiveOp op;
    std::map<std::string, std::int64_t> numbers;
    bool on_star;
    int ranks;
    Bytes bytes;
    const char* because;  // none: it holds
  };
  const char* shared = "with more than 2 segments, upward and downward messages share the ports of the ranks";
  const char* not_full =
      "the tree is not full: ranks without children send first, while the port of their parent is free";
  const char* out_of_step =
      "the pieces of the rings differ by a byte, so rings that share ports get out of step, and one sends during the "
      "latency of another";
  const std::vector<Row> rows{
      {"chain", all_reduce, {{"segments", 3}}, true, 4, 3000_B, shared},
      {"chain", all_reduce, {{"segments", 2}}, true, 4, 3000_B, nullptr},
      {"chain", all_reduce, {{"segments", 3}}, true, 2, 3000_B, nullptr},
      {"kary_tree", reduce, {{"arity", 2}, {"segments", 3}}, true, 6, 3000_B, not_full},
      {"kary_tree", reduce, {{"arity", 2}, {"segments", 3}}, true, 7, 3000_B, nullptr},
      {"kary_tree", reduce, {{"arity", 2}, {"segments", 3}}, false, 6, 3000_B, nullptr},
      {"ring", all_reduce, {{"rings", 2}}, true, 5, 1001_B, out_of_step},
      {"ring", all_reduce, {{"rings", 2}}, true, 5, 1000_B, nullptr},
      {"double_binary_tree",
       all_reduce,
       {{"segments", 4}},
       true,
       8,
       8000_B,
       "the ranks are not fully meshed, and the two trees share their links: b and a are those of the slowest and the "
       "longest path between neighboring ranks"},
      {"double_binary_tree",
       all_reduce,
       {{"segments", 20}},
       false,
       8,
       8000_B,
       "both trees use the cable from rank 1 to rank 2 at the same time"},
      {"double_binary_tree", all_reduce, {{"segments", 4}}, false, 8, 8000_B, nullptr},
      {"double_binary_tree", all_reduce, {{"segments", 1}}, false, 2, 4_B, nullptr},
  };
  for (const Row& row : rows) {
    CAPTURE(row.algorithm);
    CAPTURE(row.ranks);
    const LinkSpec link{.bandwidth = 1_GBps, .latency = row.on_star ? 5'000_ps : 10'000_ps};
    const Topology net = row.on_star ? build(Star{row.ranks, link}) : build(FullMesh{row.ranks, link});
    const Algorithm& algorithm = *find_algorithm(row.algorithm);
    const Arguments arguments{row.numbers, {}};
    const CollectiveRequest request{.op = row.op, .ranks = row.ranks, .bytes = row.bytes};
    const auto found = closed_form(algorithm, arguments, request, machine_of(net));
    REQUIRE(found.has_value());
    CHECK(found->holds() == (row.because == nullptr));
    if (row.because != nullptr) {
      REQUIRE(found->because.size() == 1);
      CHECK(found->because[0] == row.because);
    }
    CHECK(found->agrees(run(net, check(algorithm.make(request, arguments))).duration()) == found->holds());
  }
}

TEST_CASE("the forms of exchanges and compositions, worked by hand for 400 bytes at 1 B/ns and a = 10 ns") {
  CHECK(form("recursive_doubling", 4, 400_B).time == ns(2 * (10 + 400)));
  CHECK(form("recursive_doubling", 5, 400_B).time == ns((2 + 2) * (10 + 400)));
  CHECK(form("halving_doubling", 4, 400_B, {}, CollectiveOp::reduce_scatter).time == ns(2 * 10 + 300));
  CHECK(form("recursive_doubling", 4, 400_B, {}, CollectiveOp::all_gather).time == ns(2 * 10 + 300));
  CHECK(form("bruck", 5, 500_B, {}, CollectiveOp::all_gather).time == ns(3 * 10 + 100 + 200 + 100));
  CHECK(form("pat", 5, 500_B, {}, CollectiveOp::reduce_scatter).time == ns(3 * 10 + 200 + 100 + 100));
  CHECK(form("bruck", 4, 400_B, {}, CollectiveOp::all_to_all).time == ns(2 * (10 + 200)));
  CHECK(form("bruck", 3, 300_B, {}, CollectiveOp::all_to_all).time == ns(2 * (10 + 100)));  // of 1 and 2: a bit each
  CHECK(form("swing", 4, 400_B).time == ns(4 * 10 + 600));
  // Blocks of 2 and 1: halving, all of the one's buffer up, and down, and doubling.
  CHECK(form("halving_doubling", 3, 400_B, {.texts = {{"fold", "binary_blocks"}}}).time ==
        ns((10 + 200) + 2 * (10 + 400) + (10 + 200)));
  CHECK(form("hierarchical", 4, 400_B, {.numbers = {{"group", 2}}}).time ==
        ns((10 + 200) + 2 * (10 + 100) + (10 + 200)));
  const Arguments square{.numbers = {}, .texts = {{"dimensions", "2x2"}}};
  CHECK(form("torus", 4, 400_B, square).time == ns(2 * (10 + 200) + 2 * (10 + 100)));
  CHECK(form("bucket", 4, 400_B, square).time == ns(2 * (10 + 200) + 2 * (10 + 100)));  // four lanes share a port
  CHECK(form("bucket", 4, 400_B, square).holds());
  CHECK_FALSE(form("bucket", 4, 401_B, square).holds());
  CHECK(form("in_switch", 4, 400_B, {.numbers = {{"segments", 4}}}).time == ns(5 * (5 + 100)));
}

TEST_CASE("a grid of equal cables is known where it is asked for, and an unequal one is not") {
  const LinkSpec link{.bandwidth = 10_GBps, .latency = 500'000_ps};
  const Topology torus = build(Torus{.dimensions = {3, 4}, .link = link});
  const auto shape = [&](std::vector<int> grid) {
    return uniform_of(torus, torus.ranks(), {}, Transport{}, {}, grid).shape;
  };
  CHECK(shape({3, 4}) == Shape::grid);
  CHECK(shape({4, 3}) == Shape::other);
  CHECK(shape({12}) == Shape::other);
  CHECK(shape({}) == Shape::other);
}

TEST_CASE("chunks that do not divide evenly are rounded up, in halving-doubling also down") {
  CHECK(form("ring", 4, 401_B).time == ns(6 * (10 + 101)));
  CHECK(form("ring", 4, 1_B).time == ns(6 * (10 + 1)));
  const ClosedForm uneven = form("halving_doubling", 4, 401_B);  // blocks of 200.5 and 100.25 bytes, there and back
  CHECK(uneven.low == ns(2 * (10 + 200) + 2 * (10 + 100)));
  CHECK(uneven.time == ns(2 * (10 + 201) + 2 * (10 + 101)));
  CHECK(form("parameter_server", 4, 401_B, {.numbers = {{"servers", 2}}}).time == ns(2 * 4 * 201 + 20));
}

TEST_CASE("13 ranks: naive takes 2a + 2p/b more than 8, and 1.875 p/b more than 16 at a = 0; rabenseifner one a more") {
  const Bytes p = 1_MiB;
  const Arguments naive{.texts = {{"fold", "naive"}}}, other{.texts = {{"fold", "rabenseifner"}}};
  const Picoseconds one_p = transfer_time(p, 1_GBps);
  const Picoseconds thirteen = form("halving_doubling", 13, p, naive).time;
  CHECK(thirteen == form("halving_doubling", 8, p, naive).time + ns(2 * 10) + 2 * one_p);
  CHECK(form("halving_doubling", 13, p, other).time == thirteen + ns(10));
  const Uniform no_latency{Shape::star, 1_GBps, Picoseconds{0}};
  CHECK(form("halving_doubling", 13, p, naive, CollectiveOp::all_reduce, no_latency).time ==
        form("halving_doubling", 16, p, naive, CollectiveOp::all_reduce, no_latency).time + one_p * 15 / 8);
}

TEST_CASE("simulated, 13 ranks keep the same distances from 8 and 16 ranks") {
  const Bytes p = 16_MiB;
  const LinkSpec port{.bandwidth = 1_GBps, .latency = 5'000_ps};
  const auto simulated = [&](int ranks, const char* fold) {
    const Algorithm& algorithm = *find_algorithm("halving_doubling");
    return run(build(Star{ranks, port}),
               check(algorithm.make({.ranks = ranks, .bytes = p}, {.texts = {{"fold", fold}}})))
        .duration();
  };
  const Picoseconds thirteen = simulated(13, "naive");
  CHECK(thirteen == simulated(8, "naive") + ns(2 * 10) + 2 * transfer_time(p, 1_GBps));
  CHECK(simulated(13, "rabenseifner") == thirteen + ns(10));
}

TEST_CASE("one rank takes no time, whatever the algorithm") {
  for (const Algorithm& algorithm : algorithms())
    CHECK(closed_form(algorithm, {}, {.op = algorithm.ops.front(), .ranks = 1, .bytes = 1_MiB}, star)->time.count() ==
          0);
}

TEST_CASE("a star, a mesh and a ring are known by their links, not by their names") {
  const LinkSpec link{.bandwidth = 25_GBps, .latency = 700'000_ps};
  const Uniform on_star = machine_of(build(Star{5, link}));
  CHECK(on_star.shape == Shape::star);
  CHECK(on_star.b == link.bandwidth);
  CHECK(on_star.a == 2 * link.latency);  // two links a path
  CHECK(machine_of(build(Star{5, link, 3})).shape == Shape::star);
  CHECK(machine_of(build(FullMesh{5, link})).shape == Shape::full_mesh);
  const Uniform on_ring = machine_of(build(Ring{5, link}));
  CHECK(on_ring.shape == Shape::neighbors);
  CHECK(on_ring.a == link.latency);
}

TEST_CASE("one port that differs, or is half duplex, is no longer the textbook's star") {
  Graph graph;
  graph.nodes = {{"g0", NodeKind::gpu}, {"g1", NodeKind::gpu}, {"g2", NodeKind::gpu}, {"s", NodeKind::network_switch}};
  for (const char* gpu : {"g0", "g1", "g2"})
    graph.links.push_back({.from = gpu, .to = "s", .link = {.bandwidth = 10_GBps}});
  CHECK(machine_of(build(graph)).shape == Shape::star);
  graph.links[1].link.bandwidth = 5_GBps;
  const Uniform slower = machine_of(build(graph));
  CHECK(slower.shape == Shape::other);
  CHECK(slower.b == 5_GBps);  // the narrowest of the paths between neighbors
  graph.links[1].link = {.bandwidth = 10_GBps, .duplex = Duplex::half};
  CHECK(machine_of(build(graph)).shape == Shape::other);
  const ClosedForm ring = form("ring", 3, 1_MiB, {}, CollectiveOp::all_reduce, slower);
  CHECK(!ring.holds());
  CHECK(ring.because.size() == 1);
}

TEST_CASE("agrees() allows a picosecond a step and no more") {
  const ClosedForm ring = form("ring", 4, 400_B);
  CHECK(ring.agrees(ring.time));
  CHECK(ring.agrees(ring.time + 6_ps));
  CHECK(ring.agrees(ring.time - 6_ps));
  CHECK(!ring.agrees(ring.time + 7_ps));
  CHECK(!ring.agrees(ring.time - 7_ps));
}

TEST_CASE("every case of the grid up to 100 ranks is good: the larger ones are run by `ringsim check`") {
  int cases = 0;
  for (const GridCase& c : closed_form_grid()) {
    if (c.request.ranks > 100) continue;
    CAPTURE(c.algorithm);
    CAPTURE(c.machine);
    CAPTURE(c.request.ranks);
    CAPTURE(c.request.bytes.count);
    const GridResult result = run_case(c);
    CHECK(result.good);
    CHECK(result.off() <= result.form.steps);
    ++cases;
  }
  CHECK(cases > 8000);
}

TEST_CASE("where packets get in each other's way, or buffers hold them back, a form says that it does not hold") {
  const auto holds = [](const std::string& algorithm, CollectiveOp op, const Arguments& arguments,
                        const PacketOptions& options) {
    auto form = closed_form(*find_algorithm(algorithm), arguments, {.op = op, .ranks = 8, .bytes = 1_MiB},
                            {Shape::star, 10_GBps, 1000_ps});
    REQUIRE(form.has_value());
    REQUIRE(form->holds());
    assume_packets(*form, options);
    return form->holds();
  };
  CHECK(holds("ring", CollectiveOp::all_reduce, {}, {}));
  CHECK(holds("parameter_server", CollectiveOp::all_reduce, {}, {}));
  CHECK(holds("pairwise", CollectiveOp::all_to_all, {}, {}));
  CHECK_FALSE(holds("direct", CollectiveOp::all_to_all, {}, {}));
  CHECK_FALSE(holds("parameter_server", CollectiveOp::all_reduce, {.numbers = {{"servers", 2}}}, {}));
  CHECK_FALSE(holds("ring", CollectiveOp::all_reduce, {}, {.buffer = 1_MiB}));
}

namespace {

/// The form of a ring, as a protocol has it; on the star above, if on no other machine.
ClosedForm ring_under(const char* protocol, int ranks, Bytes bytes, CollectiveOp op = CollectiveOp::all_reduce,
                      const Uniform& machine = star, const Arguments& arguments = {}) {
  ClosedForm found = form("ring", ranks, bytes, arguments, op, machine);
  assume_protocol(found, *find_algorithm("ring"), arguments, {.op = op, .ranks = ranks, .bytes = bytes}, machine,
                  *find_protocol(protocol));
  return found;
}

Arguments in_segments(std::int64_t n) { return {.numbers = {{"segments", n}}}; }

}  // namespace

TEST_CASE("the ring's forms under protocols, worked by hand at 1 B/ns and a = 10 ns") {
  using enum CollectiveOp;
  // Simple: as the textbooks' but for what it adds to a latency over NVLink, 2800 ns. LL: twice the bytes. LL128: 100 B
  // are 107 on the wire.
  CHECK(ring_under("simple", 4, 400_B).time == ns(6 * (10 + 100)));
  CHECK(ring_under("ll", 4, 400_B, reduce_scatter).time == ns(3 * (10 + 200)));
  CHECK(ring_under("ll128", 4, 400_B, all_gather).time == ns(3 * (10 + 107)));
  Uniform nvlink = star;
  nvlink.type = PathType::nvl;
  CHECK(ring_under("simple", 4, 400_B, all_reduce, nvlink).time == ns(6 * (10 + 2800 + 100)));
  CHECK(ring_under("ll", 4, 400_B, all_reduce, nvlink).time == ns(6 * (10 + 200)));
  // The chain: three hops, and four more segments of 80 ns from the root.
  CHECK(ring_under("simple", 4, 400_B, broadcast, star, in_segments(5)).time == ns(3 * (10 + 80) + 4 * 80));
  CHECK(ring_under("none", 4, 400_B, broadcast, star, in_segments(5)).time == ns(7 * (10 + 80)));
  CHECK(ring_under("simple", 4, 400_B).holds());
}

TEST_CASE("a form under a protocol says where it does not hold") {
  using enum CollectiveOp;
  Uniform several = star;
  several.type.reset();
  CHECK(ring_under("simple", 4, 400_B, all_reduce, several).because ==
        std::vector<std::string>{"the paths between ranks have several types with different latencies"});
  CHECK(ring_under("ll", 4, 400_B, all_reduce, several).holds());  // LL adds nothing to any
  // Segments of 1 ns over 10 ns: ten are on the way, there are eight slots.
  const std::vector<std::string> too_few{"the slots hold fewer bytes than are sent while a message is in flight"};
  CHECK(ring_under("simple", 4, 40_B, broadcast, star, in_segments(40)).because == too_few);
  CHECK(ring_under("simple", 4, 80_B, broadcast, star, in_segments(40)).holds());
  // A segment of 1 MB needs all slots of LL and more; they are filled in 524 us.
  const auto large = [&](Picoseconds a) {
    return ring_under("ll", 4, 4'000'000_B, broadcast, {Shape::star, 1_GBps, a}, in_segments(4));
  };
  CHECK(large(ns(524'288)).holds());
  CHECK(large(ns(524'289)).because == too_few);
  ClosedForm other = form("halving_doubling", 4, 400_B);
  assume_protocol(other, *find_algorithm("halving_doubling"), {}, {.ranks = 4, .bytes = 400_B}, star,
                  *find_protocol("ll"));
  CHECK(other.because == std::vector<std::string>{"the form is for protocol none, but the protocol is ll"});
}

TEST_CASE("where a form under a protocol holds the simulation agrees, with slots that suffice just so as well") {
  struct Pattern {
    CollectiveOp op;
    int segments = 0;
  };
  int n_held = 0, n_not = 0;
  for (const char* protocol : {"ll", "ll128", "simple"}) {
    for (const Pattern& each : {Pattern{CollectiveOp::all_reduce},
                                {CollectiveOp::reduce_scatter},
                                {CollectiveOp::all_gather},
                                {CollectiveOp::broadcast, 1},
                                {CollectiveOp::broadcast, 7},
                                {CollectiveOp::broadcast, 24}}) {
      for (const int ranks : {2, 3, 5, 8}) {
        for (const Bytes bytes : {0_B, 1_B, 100'003_B, 1'000'000_B, 7'654'321_B, 48_MiB}) {
          for (const Picoseconds latency : {Picoseconds{0}, Picoseconds{1'234'567}, Picoseconds{40'000'000}}) {
            const CollectiveRequest request{.op = each.op, .ranks = ranks, .bytes = bytes};
            const Arguments arguments = each.segments > 0 ? in_segments(each.segments) : Arguments{};
            const Topology net = build(Star{ranks, {.bandwidth = 10_GBps, .latency = latency}});
            const ClosedForm expected = ring_under(protocol, ranks, bytes, each.op, machine_of(net), arguments);
            ++(expected.holds() ? n_held : n_not);
            if (!expected.holds()) continue;
            CAPTURE(protocol);
            CAPTURE(to_string(each.op));
            CAPTURE(each.segments);
            CAPTURE(ranks);
            CAPTURE(bytes.count);
            CAPTURE(latency.count());
            for (const NetworkModel model : {NetworkModel::fair, NetworkModel::packet}) {
              if (model == NetworkModel::packet && bytes > 1'000'000_B) continue;
              const CheckedSchedule checked = check(find_algorithm("ring")->make(request, arguments));
              const Picoseconds simulated =
                  run(net, checked, {.model = model, .plans = {{.protocol = find_protocol(protocol)}}}).duration();
              CAPTURE(simulated.count());
              CAPTURE(expected.time.count());
              CHECK(expected.agrees(simulated));
            }
          }
        }
      }
    }
  }
  CHECK(n_held > 900);
  CHECK(n_not > 50);
}

TEST_CASE("the paths of cables within a host are NVLink's, and a protocol's latency counts") {
  TopologyBuilder builder;
  for (int g = 0; g < 3; ++g) builder.add_gpu("g" + std::to_string(g), 0);
  for (std::uint32_t g = 0; g < 3; ++g)
    builder.add_cable(NodeId{g}, NodeId{(g + 1) % 3},
                      {.bandwidth = 1_GBps, .latency = ns(10), .kind = LinkKind::nvlink});
  const Topology net = builder.build();
  const ClosedForm expected = ring_under("simple", 3, 300_B, CollectiveOp::all_reduce, machine_of(net));
  CHECK(expected.holds());
  CHECK(expected.time == ns(4 * (10 + 2800 + 100)));
  CHECK(run(net, check(find_algorithm("ring")->make({.ranks = 3, .bytes = 300_B}, {})),
            {.plans = {{.protocol = find_protocol("simple")}}})
            .duration() == expected.time);
}

TEST_CASE("in the switch, and step by step to all, the form is exact also where segments and blocks differ by a byte") {
  // 7 of 64 segments have a byte. Up they take 7 ns and 64 latencies of a port, 5 ns; down, the last one more.
  const ClosedForm in_switch = form("in_switch", 13, 7_B, {.numbers = {{"segments", 64}}, .texts = {}});
  CHECK(in_switch.time == ns(65 * 5 + 7 + 1));
  CHECK(in_switch.low == in_switch.time);
  const ClosedForm at_once = form("in_switch", 13, 7_B, {.numbers = {{"segments", 64}}, .texts = {}},
                                  CollectiveOp::all_reduce, {Shape::star, 1_GBps, 0_ps});
  CHECK(at_once.time == ns(7 + 1));
  // 4 ranks, 6 B: blocks of 1, 2, 1, 2 B, of which the first stays.
  const ClosedForm to_all = form("pairwise", 4, 6_B, {}, CollectiveOp::all_to_all);
  CHECK(to_all.time == ns(3 * 10 + 2 + 1 + 2));
  CHECK(to_all.low == to_all.time);
}

TEST_CASE("a form that sizes leave more than half a per cent of room does not hold; one that they leave less, does") {
  const auto because = [](Picoseconds low, Picoseconds time) {
    ClosedForm form{.formula = "by hand", .time = time, .low = low};
    assume_even_sizes(form);
    return form.because;
  };
  CHECK(because(ns(1000), ns(1000)).empty());
  CHECK(because(ns(995), ns(1000)).empty());
  CHECK(because(0_ps, 0_ps).empty());
  REQUIRE(because(ns(994), ns(1000)).size() == 1);
  CHECK(because(0_ps, ns(1000)).front() ==
        "the sizes do not divide evenly: rounded down, they would take 0.000 us, so the form is only a bound");
}

TEST_CASE("there is no ratio to a form of no time, but where simulation takes none either") {
  const ClosedForm nothing{.formula = "0"};
  CHECK(nothing.ratio(0_ps) == 1.0);
  CHECK_FALSE(nothing.ratio(1_ps));
  CHECK(ClosedForm{.formula = "by hand", .time = ns(4)}.ratio(ns(1)) == 0.25);
}

TEST_CASE("two trees whose halves differ by a byte meet on the cable of two ranks, and the form says so") {
  // Without latency, 1 B/ns: 1 B goes up from rank 1 for 1 ns; it comes down while the other tree's 2 B still go up.
  const auto halves = [](Bytes bytes) {
    return form("double_binary_tree", 2, bytes, {.numbers = {{"segments", 1}}, .texts = {}}, CollectiveOp::all_reduce,
                {Shape::full_mesh, 1_GBps, 0_ps});
  };
  REQUIRE(halves(3_B).because.size() == 1);
  CHECK(halves(3_B).because[0] ==
        "segments differ by a byte: both trees use the cable from rank 1 to rank 0 at the same time");
  CHECK(halves(4_B).holds());
}

}  // namespace closed_form_test
