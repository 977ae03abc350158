#include "sim/topology/routes.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <deque>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "sim/base/error.hpp"
#include "tests/support/names.hpp"
#include "tests/support/sketch.hpp"
#include "topologies/catalog.hpp"

namespace routes_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {
const LinkSpec cable{.bandwidth = 10_GBps, .latency = 1_ps};

std::string path_text(Routes& routes, const Topology& t, const std::string& from, const std::string& to) {
  return text_of(t, routes.find(at(t, from), at(t, to)));
}

}  // namespace

TEST_CASE("inside dgx-1v: NVLink first, then a relaying GPU, then PCIe") {
  const Topology t = build(cluster_of("dgx-1v", 1));
  Routes routes(t, {});
  CHECK(path_text(routes, t, "node0.gpu0", "node0.gpu0") == "LOC:");
  CHECK(path_text(routes, t, "node0.gpu0", "node0.gpu4") == "NVL: node0.gpu0 > node0.gpu4");
  // 0 has 1 (NV1), 2 (NV1), 3 (NV2), 4 (NV2); 5 has 1 (NV2), 4 (NV1). Both relays are as narrow as one link: the lower.
  CHECK(path_text(routes, t, "node0.gpu0", "node0.gpu5") == "NVB: node0.gpu0 > node0.gpu1 | node0.gpu1 > node0.gpu5");
  // 0-3 and 3-7 are NV2, NV1; 0-4 and 4-7 are both NV2: the wider pair, though its number is higher.
  CHECK(path_text(routes, t, "node0.gpu0", "node0.gpu7") == "NVB: node0.gpu0 > node0.gpu4 | node0.gpu4 > node0.gpu7");
  CHECK(path_text(routes, t, "node0.gpu0", "node0.nic0") == "PIX: node0.gpu0 > node0.pcie0 > node0.nic0");
  CHECK(path_text(routes, t, "node0.gpu0", "node0.mem0") == "PHB: node0.gpu0 > node0.pcie0 > node0.cpu0 > node0.mem0");
  CHECK(path_text(routes, t, "node0.gpu0", "node0.cpu1") == "SYS: node0.gpu0 > node0.pcie0 > node0.cpu0 > node0.cpu1");
  const Path nvb = routes.find(at(t, "node0.gpu0"), at(t, "node0.gpu5"));
  CHECK(narrowest(t, nvb) == Bandwidth{24'240'000'000});
  CHECK(latency(nvb) == 1'200'000_ps);
  CHECK(nvb.legs[0].latency == 600'000_ps);
}

TEST_CASE("between two dgx-1v with GPUDirect, one leg leads from GPU to GPU through the NICs next to them") {
  const Topology t = build(cluster_of("dgx-1v", 2, StarFabric{{.bandwidth = 100_Gbps, .latency = 1'000'000_ps}}));
  Routes routes(t, {});
  CHECK(path_text(routes, t, "node0.gpu0", "node1.gpu0") ==
        "NET: node0.gpu0 > node0.pcie0 > node0.nic0 > leaf0 > node1.nic0 > node1.pcie0 > node1.gpu0");
  CHECK(path_text(routes, t, "node1.gpu3", "node0.gpu5") ==
        "NET: node1.gpu3 > node1.pcie1 > node1.nic1 > leaf0 > node0.nic2 > node0.pcie2 > node0.gpu5");
  const Path path = routes.find(at(t, "node0.gpu0"), at(t, "node1.gpu0"));
  CHECK(latency(path) == 4 * 350'000_ps + 2 * 1'500'000_ps);  // PCIe; adapter and cable
  CHECK(narrowest(t, path) == Bandwidth{10'230'179'028});     // 12 / 1.173: what an adapter reads from a V100
  CHECK(path_text(routes, t, "node0.nic1", "leaf0") == "NET: node0.nic1 > leaf0");
}

TEST_CASE("between two dgx-1v without GPUDirect, data rests in the memory of each GPU's own socket") {
  const Topology t = build(cluster_of("dgx-1v", 2, StarFabric{{.bandwidth = 100_Gbps, .latency = 1'000'000_ps}}));
  Routes routes(t, {.gdr_level = PathType::loc});
  // Then data for both NICs of a socket goes by its CPU; GPUs 4, 5, 6, 7 take nic2, nic3, nic2, nic3.
  CHECK(path_text(routes, t, "node0.gpu0", "node1.gpu5") ==
        "NET: node0.gpu0 > node0.pcie0 > node0.cpu0 > node0.mem0 |"
        " node0.mem0 > node0.cpu0 > node0.pcie0 > node0.nic0 > leaf0 > node1.nic3 > node1.pcie3 > node1.cpu1 >"
        " node1.mem1 |"
        " node1.mem1 > node1.cpu1 > node1.pcie2 > node1.gpu5");
  // Host memory itself is not staged; only the GPU's side is.
  CHECK(path_text(routes, t, "node0.mem1", "node1.gpu0") ==
        "NET: node0.mem1 > node0.cpu1 > node0.pcie2 > node0.nic2 > leaf0 > node1.nic0 > node1.pcie0 > node1.cpu0 >"
        " node1.mem0 |"
        " node1.mem0 > node1.cpu0 > node1.pcie0 > node1.gpu0");
  CHECK(path_text(routes, t, "node0.gpu0", "node0.gpu4") == "NVL: node0.gpu0 > node0.gpu4");  // not a NIC's matter
}

TEST_CASE("a protocol whose buffers are in host memory anyway takes the links of GPUDirect at any level") {
  const Topology t = build(cluster_of("dgx-1v", 2, StarFabric{{.bandwidth = 100_Gbps, .latency = 1'000'000_ps}}));
  Routes direct(t, {}), always(t, {.gdr_level = PathType::loc, .always_direct = true});
  CHECK(path_text(always, t, "node0.gpu0", "node1.gpu0") == path_text(direct, t, "node0.gpu0", "node1.gpu0"));
  // Without GPUDirect, NCCL takes GPUs 4 and 6 to nic2, and so does this: gpu5 enters by nic3, not by nic2.
  CHECK(path_text(always, t, "node0.gpu0", "node1.gpu5") ==
        "NET: node0.gpu0 > node0.pcie0 > node0.nic0 > leaf0 > node1.nic3 > node1.pcie3 > node1.cpu1 > node1.pcie2 > "
        "node1.gpu5");
}

TEST_CASE("data between a GPU and a NIC rests in host memory if one of them has no GPUDirect") {
  // g0 - p0 - n0 (PIX), c0 with its memory above p0; the same on the other host, whose devices all have it.
  for (const char* denied : {"g0", "n0"}) {
    CAPTURE(denied);
    Sketch s;
    for (const std::string end : {"0", "1"}) {
      for (const char* kind : {"g", "p", "n", "c", "m"}) s.node(kind + end, end == "0" ? 0 : 1);
      for (const auto& [a, b] : {std::pair{"g", "p"}, {"n", "p"}, {"p", "c"}, {"c", "m"}})
        s.cable(a + end, b + end, cable);
    }
    s.cable("n0", "n1", cable);
    s.builder.deny_gpudirect(s.ids.at(denied));
    const Topology t = s.builder.build();
    Routes routes(t), far(t, {.gdr_level = PathType::sys}), assumes(t, {.assumes_gpudirect = true});
    const std::string staged = "NET: g0 > p0 > c0 > m0 | m0 > c0 > p0 > n0 > n1 > p1 > g1";
    CHECK(path_text(routes, t, "g0", "g1") == staged);
    CHECK(path_text(routes, t, "g1", "g0") == "NET: g1 > p1 > n1 > n0 > p0 > c0 > m0 | m0 > c0 > p0 > g0");
    CHECK(path_text(far, t, "g0", "g1") == staged);  // no level overrides it
    CHECK(path_text(assumes, t, "g0", "g1") == "NET: g0 > p0 > n0 > n1 > p1 > g1");
    CHECK(path_text(routes, t, "n0", "g1") == "NET: n0 > n1 > p1 > g1");  // no GPU's matter
  }
}

TEST_CASE("functions of a PCI device share its slot, which is no switch on a path") {
  // g0 and n0 at the switch p0, n0 in the slot t0.
  Sketch s;
  const NodeId g0 = s.node("g0", 0), n0 = s.node("n0", 0), p0 = s.node("p0", 0), far = s.node("n1", 1),
               g1 = s.node("g1", 1);
  const NodeId slot = s.builder.add_node("t0", NodeKind::pcie_slot, 0);
  s.builder.add_cable(g0, p0, cable);
  s.builder.add_cable(slot, p0, cable);
  s.builder.add_cable(n0, slot, cable);
  s.builder.add_cable(n0, far, cable);
  s.builder.add_cable(far, g1, cable);
  const Topology t = s.builder.build();
  Routes routes(t, {.gdr_level = PathType::pix});
  CHECK(path_text(routes, t, "g0", "n0") == "PIX: g0 > p0 > t0 > n0");
  CHECK(path_text(routes, t, "g0", "g1") == "NET: g0 > p0 > t0 > n0 > n1 > g1");
}

TEST_CASE("with GPUDirect a NIC behind several PCIe switches is reached directly, one behind a CPU is not") {
  // g0 - p0 - p1 - n0 (PXB); g1 - c - n1 (PHB), memory m at c.
  for (const bool behind_cpu : {false, true}) {
    CAPTURE(behind_cpu);
    Sketch s;
    const NodeId g0 = s.node("g0", 0), c0 = s.node("c0", 0), m0 = s.node("m0", 0), p0 = s.node("p0", 0),
                 p1 = s.node("p1", 0), n0 = s.node("n0", 0), far = s.node("n1", 1), g1 = s.node("g1", 1);
    s.builder.add_cable(g0, p0, cable);
    s.builder.add_cable(p0, behind_cpu ? c0 : p1, cable);
    s.builder.add_cable(p1, c0, cable);
    s.builder.add_cable(c0, m0, cable);
    s.builder.add_cable(p1, n0, cable);
    s.builder.add_cable(n0, far, cable);
    s.builder.add_cable(far, g1, cable);
    const Topology t = s.builder.build();
    Routes routes(t, {});
    CHECK(path_text(routes, t, "g0", "g1") ==
          (behind_cpu ? "NET: g0 > p0 > c0 > m0 | m0 > c0 > p1 > n0 > n1 > g1" : "NET: g0 > p0 > p1 > n0 > n1 > g1"));
  }
}

TEST_CASE("NVLink through an NVSwitch is one leg, and no GPU relays where there is one") {
  Sketch s;
  const NodeId g0 = s.node("g0", 0), g1 = s.node("g1", 0), g2 = s.node("g2", 0), v0 = s.node("v0", 0),
               p0 = s.node("p0", 0);
  const LinkSpec nvlink{.bandwidth = 25_GBps, .kind = LinkKind::nvlink};
  for (const NodeId gpu : {g0, g1}) s.builder.add_cable(gpu, v0, nvlink);
  for (const NodeId gpu : {g0, g1, g2}) s.builder.add_cable(gpu, p0, cable);
  const Topology t = s.builder.build();
  Routes routes(t, {});
  CHECK(path_text(routes, t, "g0", "g1") == "NVL: g0 > v0 > g1");
  CHECK(path_text(routes, t, "g0", "g2") == "PIX: g0 > p0 > g2");
}

TEST_CASE("a GPU of a free topology relays only where no way without one exists") {
  // g0 - g1 - g2 is two hops with a relay, g0 - s0 - s1 - g2 three without one; g3 hangs behind g2.
  Sketch s;
  const NodeId g0 = s.node("g0"), g1 = s.node("g1"), g2 = s.node("g2"), g3 = s.node("g3"), s0 = s.node("s0"),
               s1 = s.node("s1"), m0 = s.node("m0");
  s.builder.add_cable(g0, g1, cable);
  s.builder.add_cable(g1, g2, cable);
  s.builder.add_cable(g0, s0, cable);
  s.builder.add_cable(s0, s1, cable);
  s.builder.add_cable(s1, g2, cable);
  s.builder.add_cable(g2, g3, cable);
  s.builder.add_cable(g0, m0, cable);  // memory is never crossed: this is no short cut
  s.builder.add_cable(m0, g2, cable);
  const Topology t = s.builder.build();
  Routes routes(t, {});
  CHECK(path_text(routes, t, "g0", "g2") == "DIR: g0 > s0 > s1 > g2");
  CHECK(path_text(routes, t, "g1", "g3") == "DIR: g1 > g2 | g2 > g3");
  CHECK(path_text(routes, t, "g3", "g0") == "DIR: g3 > g2 | g2 > s1 > s0 > g0");
  CHECK(path_text(routes, t, "g0", "m0") == "DIR: g0 > m0");
}

TEST_CASE("among equal hops the lower latency wins, then the higher bandwidth, then the link added first") {
  struct Row {
    Picoseconds latency;
    Bandwidth bandwidth;
    std::string expected;
  };
  for (const Row& row :
       {Row{2_ps, 20_GBps, "s0"}, Row{1_ps, 20_GBps, "s1"}, Row{1_ps, 10_GBps, "s0"}, Row{0_ps, 1_GBps, "s1"}}) {
    Sketch s;
    const NodeId g0 = s.node("g0"), g1 = s.node("g1"), s1 = s.node("s1"), s0 = s.node("s0");
    s.builder.add_cable(g0, s0, cable);
    s.builder.add_cable(s0, g1, cable);
    s.builder.add_cable(g0, s1, {.bandwidth = row.bandwidth, .latency = row.latency});
    s.builder.add_cable(s1, g1, {.bandwidth = row.bandwidth, .latency = row.latency});
    const Topology t = s.builder.build();
    Routes routes(t, {});
    CHECK(path_text(routes, t, "g0", "g1") == "DIR: g0 > " + row.expected + " > g1");
  }
  // Of parallel cables likewise.
  Sketch s;
  const NodeId g0 = s.node("g0"), g1 = s.node("g1");
  s.builder.add_cable(g0, g1, {.bandwidth = 10_GBps, .latency = 5_ps});
  s.builder.add_cable(g0, g1, {.bandwidth = 20_GBps, .latency = 5_ps});
  s.builder.add_cable(g0, g1, {.bandwidth = 90_GBps, .latency = 6_ps});
  const Topology t = s.builder.build();
  Routes routes(t, {});
  CHECK(narrowest(t, routes.find(g0, g1)) == 20_GBps);
}

TEST_CASE("both directions of a half-duplex cable lead over one resource") {
  const Topology t = build(Ring{2, {.bandwidth = 10_GBps, .duplex = Duplex::half}});
  Routes routes(t, {});
  const LinkId there = routes.find(NodeId{0}, NodeId{1}).legs.at(0).links.at(0);
  const LinkId back = routes.find(NodeId{1}, NodeId{0}).legs.at(0).links.at(0);
  CHECK(there != back);
  CHECK(t.link(there).resource == t.link(back).resource);
}

TEST_CASE("where no path leads, the error names both ends and what is missing") {
  const auto message = [](const Topology& t, const Transport& how, const std::string& from, const std::string& to) {
    Routes routes(t, how);
    try {
      routes.find(at(t, from), at(t, to));
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  Sketch free;
  const NodeId g0 = free.node("g0"), g1 = free.node("g1");
  free.builder.add_link(g0, g1, cable);
  const Topology one_way = free.builder.build();
  CHECK(message(one_way, {}, "g0", "g1") == "no error");
  CHECK(message(one_way, {}, "g1", "g0") ==
        "no path from g1 to g0: no chain of links leads there\n  hint: add a link on the path; a one-way link is not "
        "used backwards, and data never passes through memory");

  Sketch hosts;
  hosts.node("g0", 0);
  hosts.node("g1", 1);
  hosts.node("g2", 0);
  const Topology bare = hosts.builder.build();
  CHECK(message(bare, {}, "g0", "g1") ==
        "no path from g0 to g1: no NIC of the host of g0 is both cabled to the fabric and reachable\n  hint: give the "
        "node a NIC and a fabric");
  CHECK(message(bare, {}, "g0", "g2") ==
        "no path from g0 to g2: no chain of PCIe switches and CPUs connects them, and at most one GPU may relay over "
        "NVLink\n  hint: add the PCIe links of this host");

  Sketch split;
  for (const std::uint32_t host : {0U, 1U}) {
    const std::string h = std::to_string(host);
    const NodeId gpu = split.node("g" + h, host), nic = split.node("n" + h, host), leaf = split.node("s" + h);
    split.builder.add_cable(gpu, nic, cable);
    split.builder.add_cable(nic, leaf, cable);
  }
  const Topology islands = split.builder.build();
  CHECK(message(islands, {}, "g0", "g1") ==
        "no path from g0 to g1: the fabric connects no NIC of the host of g0 to one of g1's\n  hint: cable "
        "both to connected switches; if only rails are connected, allow PXN");
  Sketch joined;
  for (const char* name : {"g0", "n0"}) joined.node(name, 0);
  for (const char* name : {"g1", "n1"}) joined.node(name, 1);
  joined.cable("g0", "n0", cable);
  joined.cable("g1", "n1", cable);
  joined.cable("n0", "n1", cable);
  Sketch denied = joined;
  const Topology poor = joined.builder.build();
  CHECK(message(poor, {.gdr_level = PathType::loc}, "g0", "g1") ==
        "no path from g0 to g1: data must be staged in host memory, but the host of g0 has none that it can reach\n  "
        "hint: add host memory, or let gdr_level (now LOC) reach the NIC");
  denied.builder.deny_gpudirect(denied.ids.at("n0"));
  CHECK(message(denied.builder.build(), {}, "g0", "g1") ==
        "no path from g0 to g1: data must be staged in host memory, but the host of g0 has none that it can reach\n  "
        "hint: add host memory; n0 has no GPUDirect");
}

namespace {
/// Hops of a shortest way, by breadth-first search; -1 where there is none.
int naive_hops(const Topology& t, NodeId from, NodeId to) {
  std::vector<int> hops(t.n_nodes(), -1);
  std::deque<NodeId> queue{from};
  hops[from.value] = 0;
  while (!queue.empty()) {
    const NodeId at = queue.front();
    queue.pop_front();
    for (const LinkId id : t.links_from(at)) {
      const NodeId next = t.link(id).to;
      if (hops[next.value] < 0) hops[next.value] = hops[at.value] + 1, queue.push_back(next);
    }
  }
  return hops[to.value];
}
}  // namespace

TEST_CASE("neighbors on a star of 4096 are two hops apart, and finding so takes no search") {
  const int n = 4096;
  const Topology t = build(Star{n, cable, 1});
  Routes routes(t, {});
  const auto start = std::chrono::steady_clock::now();
  std::size_t n_links = 0;
  for (std::uint32_t r = 0; r < n; ++r) {
    const Path path = routes.find(NodeId{r}, NodeId{(r + 1) % n});
    for (const Leg& leg : path.legs) n_links += leg.links.size();
  }
  const auto spent = std::chrono::steady_clock::now() - start;
  CHECK(n_links == 2 * n);
  // A search of the whole star a pair would take 4096 * 4096 looks at a node. A bound that only such a thing breaks.
  CHECK(spent < std::chrono::milliseconds(500));
  for (const std::uint32_t r : {0U, 1U, 2047U, 4095U}) {
    CHECK(naive_hops(t, NodeId{r}, NodeId{(r + 1) % n}) == 2);
    CHECK(text_of(t, routes.find(NodeId{r}, at(t, "server0"))) ==
          "DIR: gpu" + std::to_string(r) + " > switch0 > server0");
  }
}

namespace {
/// Relays, hops, latency and narrowest link (negative: wider is less) of the best way, by Floyd and Warshall.
using Key = std::tuple<int, int, std::int64_t, std::int64_t>;
constexpr Key no_way{1 << 20, 0, 0, 0};
Key join(const Key& a, const Key& b) {
  return {std::get<0>(a) + std::get<0>(b), std::get<1>(a) + std::get<1>(b), std::get<2>(a) + std::get<2>(b),
          std::max(std::get<3>(a), std::get<3>(b))};
}

std::vector<std::vector<Key>> naive_keys(const Topology& t) {
  const std::size_t n = t.n_nodes();
  std::vector best(n, std::vector<Key>(n, no_way));
  for (const Link& link : t.links()) {
    Key& known = best[link.from.value][link.to.value];
    known = std::min(known, Key{0, 1, link.latency.count(), -link.bandwidth.bytes_per_second});
  }
  for (std::uint32_t k = 0; k < n; ++k) {
    if (t.node(NodeId{k}).kind == NodeKind::memory) continue;  // never crossed
    const Key relay{t.node(NodeId{k}).kind == NodeKind::gpu ? 1 : 0, 0, 0, INT64_MIN};
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        if (i == j || i == k || j == k || best[i][k] == no_way || best[k][j] == no_way) continue;
        best[i][j] = std::min(best[i][j], join(join(best[i][k], relay), best[k][j]));
      }
    }
  }
  return best;
}

Topology random_graph(std::uint32_t seed) {
  std::mt19937 random(seed);  // the standard fixes its numbers
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  Sketch s;
  const std::uint32_t n = 2 + below(10);
  for (std::uint32_t i = 0; i < n; ++i) s.node(std::string(1, i == 0 ? 'g' : "gssm"[below(4)]) + std::to_string(i));
  for (std::uint32_t l = below(2 * n); l > 0; --l) {
    const std::uint32_t a = below(n), b = (a + 1 + below(n - 1)) % n;
    const LinkSpec link{.bandwidth = {1 + below(3)}, .latency = Picoseconds{below(3)}};
    if (below(4) == 0) {
      s.builder.add_link(NodeId{a}, NodeId{b}, link);
    } else {
      s.builder.add_cable(NodeId{a}, NodeId{b}, link);
    }
  }
  return s.builder.build();
}
}  // namespace

TEST_CASE("on random graphs relays, hops, latency and width equal those of Floyd and Warshall") {
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    const Topology t = random_graph(seed);
    const auto naive = naive_keys(t);
    Routes routes(t, {});
    for (std::uint32_t a = 0; a < t.n_nodes(); ++a) {
      for (std::uint32_t b = 0; b < t.n_nodes(); ++b) {
        if (a == b) continue;
        CAPTURE(a);
        CAPTURE(b);
        Key found = no_way;
        try {
          const Path path = routes.find(NodeId{a}, NodeId{b});
          found = {static_cast<int>(path.legs.size()) - 1, 0, latency(path).count(),
                   -narrowest(t, path).bytes_per_second};
          NodeId here{a};
          for (const Leg& leg : path.legs) {
            for (const LinkId id : leg.links) {
              CHECK(t.link(id).from == here);  // a chain
              here = t.link(id).to;
              ++std::get<1>(found);
            }
          }
          CHECK(here == NodeId{b});
        } catch (const InputError&) {
        }
        CHECK(found == naive[a][b]);
      }
    }
  }
}

TEST_CASE("with ACS what would turn round in a PCIe switch goes up to the root complex and down again") {
  // Below c0: g0, g1 and n0 at p0; n2 at p1, which is below p0. Below the host bridge b0, which is below c0: g2, g3 at
  // p2.
  Sketch s;
  const NodeId c0 = s.node("c0", 0), p0 = s.node("p0", 0), p1 = s.node("p1", 0), p2 = s.node("p2", 0),
               b0 = s.node("b0", 0), g0 = s.node("g0", 0), g1 = s.node("g1", 0), n0 = s.node("n0", 0),
               n2 = s.node("n2", 0), g2 = s.node("g2", 0), g3 = s.node("g3", 0), m0 = s.node("m0", 0);
  const NodeId n1 = s.node("n1", 1), g4 = s.node("g4", 1);
  for (const auto& [one, other] : {std::pair(c0, p0),
                                   {p0, p1},
                                   {p0, g0},
                                   {p0, g1},
                                   {p0, n0},
                                   {p1, n2},
                                   {c0, b0},
                                   {b0, p2},
                                   {p2, g2},
                                   {p2, g3},
                                   {c0, m0},
                                   {n0, n1},
                                   {n1, g4}})
    s.builder.add_cable(one, other, cable);
  const Topology t = s.builder.build();
  Routes with(t, {.acs = true}), without(t, {});
  const auto paths = [&](const std::string& from, const std::string& to) {
    return std::pair(path_text(with, t, from, to), path_text(without, t, from, to));
  };
  using Pair = std::pair<std::string, std::string>;
  // How near devices are, by which NCCL chooses, is the same.
  CHECK(paths("g0", "g1") == Pair{"PIX: g0 > p0 > c0 > p0 > g1", "PIX: g0 > p0 > g1"});
  CHECK(paths("g0", "n0") == Pair{"PIX: g0 > p0 > c0 > p0 > n0", "PIX: g0 > p0 > n0"});
  CHECK(paths("n2", "g0") ==
        Pair{"PXB: n2 > p1 > p0 > c0 > p0 > g0", "PXB: n2 > p1 > p0 > g0"});  // in the upper switch
  CHECK(paths("g2", "g3") ==
        Pair{"PIX: g2 > p2 > b0 > p2 > g3", "PIX: g2 > p2 > g3"});  // a host bridge is a root as well
  CHECK(paths("g0", "g4") == Pair{"NET: g0 > p0 > c0 > p0 > n0 > n1 > g4", "NET: g0 > p0 > n0 > n1 > g4"});
  CHECK(paths("g4", "g1") == Pair{"NET: g4 > n1 > n0 > p0 > c0 > p0 > g1", "NET: g4 > n1 > n0 > p0 > g1"});
  // What goes by the root complex anyway stays as it is.
  CHECK(with.find(g0, m0).legs.front().links == without.find(g0, m0).legs.front().links);
  CHECK(path_text(with, t, "g0", "g2") == path_text(without, t, "g0", "g2"));
  CHECK(path_text(with, t, "m0", "n0") == path_text(without, t, "m0", "n0"));
}

TEST_CASE("ACS changes nothing over NVLink, and below a switch without a root complex") {
  Sketch s;
  const NodeId g0 = s.node("g0", 0), g1 = s.node("g1", 0), g2 = s.node("g2", 0), p0 = s.node("p0", 0);
  s.builder.add_cable(g0, g1, {.bandwidth = 25_GBps, .kind = LinkKind::nvlink});
  for (const NodeId gpu : {g0, g1, g2}) s.builder.add_cable(gpu, p0, cable);
  const Topology t = s.builder.build();
  Routes with(t, {.acs = true});
  CHECK(path_text(with, t, "g0", "g1") == "NVL: g0 > g1");
  CHECK(path_text(with, t, "g0", "g2") == "PIX: g0 > p0 > g2");
}

}  // namespace routes_test
